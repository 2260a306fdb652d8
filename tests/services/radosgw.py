"""A real S3 server with real authorisation for tests: Ceph's radosgw on loopback, in one directory.

    python tests/services/radosgw.py start DIR     prints one JSON line: endpoints, users, certificate
    python tests/services/radosgw.py stop DIR

One monitor, one OSD (bluestore; the in-memory store grows without bound) and the gateway, as root,
without systemd and without a manager. Ports are ephemeral. `RGW_LC_SECONDS=2` makes a lifecycle
"day" two seconds long. On Debian: `apt-get install --no-install-recommends radosgw ceph-mon ceph-osd
ceph-common`.

Three settings are not obvious: the gateway forces its monitor connections into `secure` mode, which
hangs without cephx, hence `crc` everywhere; the two `paxos` intervals cut the start from 14 s to 5 s;
and `auth ... none` is safe only because everything listens on loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

NEEDED = ("radosgw", "radosgw-admin", "ceph", "ceph-mon", "ceph-osd", "ceph-authtool", "monmaptool", "openssl")
USERS = ("admin", "writer", "reader")
KMS_KEY = "testkey-1"
_DAEMONS = ("client.rgw", "osd.0", "mon.a")

_CONF = """\
[global]
fsid = {fsid}
mon initial members = a
mon host = v2:127.0.0.1:{mon}
auth cluster required = none
auth service required = none
auth client required = none
public network = 127.0.0.0/8
cluster network = 127.0.0.0/8
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr1 = false
ms bind ipv6 = false
ms mon client mode = crc
ms mon service mode = crc
ms mon cluster mode = crc
ms client mode = crc
ms service mode = crc
ms cluster mode = crc
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon warn on pool no redundancy = false
mon max pg per osd = 2000
mon data avail warn = 1
mon data avail crit = 1
mon tick interval = 1
osd crush chooseleaf type = 0
paxos propose interval = 0.05
paxos min wait = 0.01
rgw lc debug interval = {lc}
admin socket = {home}/$name.asok
run dir = {home}/out
pid file = {home}/out/$name.pid
log file = {home}/out/$name.log
mon cluster log file = {home}/out/cluster.log
crash dir = {home}/out
[mon]
mon data = {home}/mon
mon cluster log to syslog = false
[osd]
osd data = {home}/osd
osd objectstore = bluestore
bluestore block size = 2147483648
osd memory target = 939524096
osd heartbeat grace = 120
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{http} ssl_endpoint=127.0.0.1:{https} ssl_certificate={home}/tls.pem
rgw lc max worker = 1
rgw enable ops log = true
rgw ops log rados = false
rgw ops log socket path = {home}/opslog.sock
rgw thread pool size = 32
rgw run sync thread = false
rgw enable quota threads = false
rgw dynamic resharding = false
rgw crypt require ssl = false
rgw sts key = abcdefghijklmnop
rgw s3 auth use sts = true
rgw crypt s3 kms backend = testing
rgw crypt s3 kms encryption keys = testkey-1=YmluCmJvb3N0CmJvb3N0LWJ1aWxkCmNlcGguY29uZgo=
"""


def missing() -> list[str]:
    """The programs this machine lacks."""
    return [name for name in NEEDED if shutil.which(name) is None]


def start(home: Path) -> dict[str, object]:
    """Start the three daemons and create the users; what the clients need to know."""
    for name in ("mon", "osd", "out"):
        (home / name).mkdir(parents=True, exist_ok=True)
    mon, http, https = _free_ports(3)
    fsid = str(uuid.uuid4())
    lc = os.environ.get("RGW_LC_SECONDS", "-1")
    conf = home / "ceph.conf"
    conf.write_text(_CONF.format(fsid=fsid, home=home, mon=mon, http=http, https=https, lc=lc))
    _certificate(home)
    _monitor(home, conf, fsid, mon)
    _osd(home, conf)
    _run("radosgw", "-c", conf, "-n", "client.rgw")
    _until(lambda: _listens(http), 90, "radosgw does not listen")
    return {
        "http": f"http://127.0.0.1:{http}",
        "https": f"https://localhost:{https}",
        "ca": str(home / "cert.pem"),
        "kms_key": KMS_KEY,
        "opslog": str(home / "opslog.sock"),
        "conf": str(conf),
        "users": _users(conf),
    }


def stop(home: Path) -> None:
    """End the daemons by their pid files."""
    pids = [int(path.read_text()) for name in _DAEMONS if (path := home / "out" / f"{name}.pid").exists()]
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            _signal(pid, sign)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in pids):
            time.sleep(0.05)


def _monitor(home: Path, conf: Path, fsid: str, port: int) -> None:
    keyring, monmap = home / "keyring", home / "monmap"
    _run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"v2:127.0.0.1:{port}", monmap)
    _run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    caps = ("--cap", "mon", "allow *", "--cap", "osd", "allow *")
    _run("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", *caps)
    _run("ceph-mon", "-c", conf, "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", keyring)
    _run("ceph-mon", "-c", conf, "-i", "a", "--keyring", keyring)


def _osd(home: Path, conf: Path) -> None:
    ident = str(uuid.uuid4())
    _run("ceph", "-c", conf, "-k", home / "keyring", "osd", "new", ident, "0")
    _run("ceph-osd", "-c", conf, "-i", "0", "--mkfs", "--osd-uuid", ident)
    _run("ceph-osd", "-c", conf, "-i", "0")
    _run("ceph", "-c", conf, "osd", "crush", "add", "osd.0", "1.0", "host=localhost", "root=default")
    _until(lambda: b"1 up" in _run("ceph", "-c", conf, "osd", "stat"), 60, "the OSD does not come up")


def _users(conf: Path) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {}
    for name in USERS:
        access, secret = f"{name.upper()}KEY", uuid.uuid4().hex
        _run(
            "radosgw-admin", "-c", conf, "user", "create", f"--uid={name}", f"--display-name={name}",
            f"--access-key={access}", f"--secret-key={secret}",
        )  # fmt: skip
        out[name] = {"aws_access_key_id": access, "aws_secret_access_key": secret}
    _run("radosgw-admin", "-c", conf, "caps", "add", "--uid=admin", "--caps=roles=*;user-policy=*")
    return out


def _certificate(home: Path) -> None:
    _run(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-addext", "keyUsage=critical,digitalSignature,keyCertSign",
        "-keyout", home / "key.pem", "-out", home / "cert.pem",
    )  # fmt: skip
    (home / "tls.pem").write_text((home / "cert.pem").read_text() + (home / "key.pem").read_text())


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for item in sockets:
        item.bind(("127.0.0.1", 0))
    ports = [item.getsockname()[1] for item in sockets]
    for item in sockets:
        item.close()
    return ports


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _run(*command: object) -> bytes:
    done = subprocess.run([str(part) for part in command], capture_output=True, check=False, timeout=120)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr.decode(errors='replace')[-800:]}")
    return done.stdout


def _until(ready: object, seconds: float, complaint: str) -> None:
    deadline = time.monotonic() + seconds
    while not ready():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise SystemExit(complaint)
        time.sleep(0.05)


def _signal(pid: int, sign: int) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    verb, where = sys.argv[1], Path(sys.argv[2]).resolve()
    if verb == "start":
        if lacking := missing():
            raise SystemExit(f"not installed: {', '.join(lacking)}")
        print(json.dumps(start(where)))
    else:
        stop(where)
