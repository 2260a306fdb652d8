"""A stolen writer credential overwrites: what is refused, what is noticed, and what can be put back."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from sealtrace.errors import VaultDenied
from sealtrace.settings import Retention, Settings
from sealtrace.vault import (
    Audit,
    S3Store,
    VaultReader,
    Verification,
    audit_lines,
    carry_out,
    check_bucket,
    find_replaced,
    haproxy,
    init_bucket,
    plan_for_runs,
    policies,
    put_back,
    verify_run,
)
from vault.gateway import Gateway
from vault.records import Conversation, plain

PREFIX = "team/runs"
_REQUIRED = os.environ.get("SEALTRACE_REQUIRE_SERVICES") == "1"


class Place:
    """A bucket as `vault init` leaves it on this server, and a store per role."""

    def __init__(self, gateway: Gateway, bucket: str | None = None) -> None:
        self.gateway = gateway
        self.bucket = bucket or gateway.bucket()
        self.owner = gateway.store(self.bucket, gateway.user("admin"), PREFIX)
        # This server's days are two seconds long.
        days = {"retention": {"io": 4000, "content": 4000, "meta": 8000}, "version_days": 4000}
        self.settings = Settings.model_validate({"endpoint_url": gateway.https, "ca_bundle": gateway.ca, **days})
        self.steps = dict(init_bucket(self.owner, self.settings)) if bucket is None else {}
        self.thief = gateway.role(policies.writer_policy(self.bucket, PREFIX))
        self.writer = self._acting(self.thief)
        self.reader = self._acting(gateway.role(policies.reader_policy(self.bucket, PREFIX)))
        self.custodian = self._acting(gateway.role(policies.custodian_policy(self.bucket, PREFIX)))

    def _acting(self, credentials: dict[str, str]) -> S3Store:
        return self.gateway.store(self.bucket, credentials, PREFIX, max_attempts=3)

    def forge(self, key: str, data: bytes = b"forged") -> int:
        """Put other bytes under the key with the writer's own credentials; the server's status."""
        return _status(self.gateway.client(self.thief).put_object, Bucket=self.bucket, Key=f"{PREFIX}/{key}", Body=data)


def _status(call: Any, **arguments: Any) -> int:
    try:
        return int(call(**arguments)["ResponseMetadata"]["HTTPStatusCode"])
    except ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"])


@pytest.fixture(scope="module")
def place(gateway: Gateway) -> Place:
    """One bucket for the tests of this module; each stores runs of its own."""
    return Place(gateway)


def _run(place: Place, number: int) -> tuple[Conversation, list[str]]:
    run = Conversation(4, seed=number, run_id=f"trace_{number:032x}")
    run.store(place.writer)
    (record,) = VaultReader(place.reader).records(run.run_id)
    return run, [item.key for item in record.objects]


def _verified(place: Place, run_id: str) -> Verification:
    return verify_run(VaultReader(place.reader), run_id)


def test_overwriting_is_noticed_and_undone(place: Place) -> None:
    """Every object of a run is written over: verify names each, and the first bytes come back."""
    run, keys = _run(place, 1)
    assert _verified(place, run.run_id).ok
    for key in keys:
        assert place.forge(key) == 200
        assert place.forge(key, b"forged again") == 200
    found = {item.key: item for item in find_replaced(place.custodian, "")}
    assert set(found) == set(keys)
    assert {len(item.false) for item in found.values()} == {2}
    named = " ".join(finding.message for finding in _verified(place, run.run_id).findings)
    manifest = next(key for key in keys if "manifest" in key)
    assert manifest in named
    assert put_back(place.custodian, found.pop(manifest))
    named = " ".join(finding.message for finding in _verified(place, run.run_id).findings)
    assert all(key in named for key in found)
    assert all(put_back(place.custodian, item) for item in found.values())
    assert _verified(place, run.run_id).ok
    (record,) = VaultReader(place.reader).records(run.run_id)
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    assert list(find_replaced(place.custodian, "")) == []


def test_the_command_puts_back_and_accounts_for_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`vault restore` shows first, does it when told, leaves an audit line, and touches no other run."""
    from sealtrace.cli import run as command_line

    (run, keys), (_, others) = _run(place, 2), _run(place, 3)
    for key in (keys[0], others[0]):
        assert place.forge(key) == 200
    for name, value in place.gateway.user("admin").items():
        monkeypatch.setenv(name.upper(), value)
    for name, value in {
        "ENDPOINT_URL": place.gateway.https, "CA_BUNDLE": place.gateway.ca, "REGION": "us-east-1",
        "ADDRESSING_STYLE": "path", "VAULT": f"s3://{place.bucket}/{PREFIX}",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"SEALTRACE_{name}", value)
    command = ["vault", "restore", "--run", run.run_id, "--reason", "a writer's key was stolen", "--json"]
    assert command_line(command) == 0
    assert json.loads(capsys.readouterr().out) == {"replaced": [keys[0]], "lost": [], "restored": False}
    assert not _verified(place, run.run_id).ok
    assert command_line([*command, "--yes"]) == 0
    assert _verified(place, run.run_id).ok
    (line,) = [line for line in audit_lines(place.reader) if line.what == "restore"]
    assert (line.about["objects"], line.reason) == ([keys[0]], "a writer's key was stolen")
    assert [item.key for item in find_replaced(place.custodian, "")] == [others[0]]


def test_what_was_erased_is_not_put_back_and_leaves_no_version(place: Place) -> None:
    """Erasing takes every version of every object, the forged ones too; nothing of the run is left in the bucket."""
    run, keys = _run(place, 4)
    assert place.forge(keys[1]) == 200
    carry_out(place.custodian, plan_for_runs(place.custodian, [run.run_id]), Audit(place.custodian, reason="asked"))
    about = place.gateway.client().list_object_versions(Bucket=place.bucket)
    left = [item["Key"] for item in [*about.get("Versions", []), *about.get("DeleteMarkers", [])]]
    assert [key for key in left if f"{4:032x}" in key and "audit/erased" not in key] == []


def test_erasing_without_the_right_to_versions_says_so(place: Place) -> None:
    """A role that can only hide an object is not told that it is gone."""
    _, keys = _run(place, 5)
    policy = policies.custodian_policy(place.bucket, PREFIX)
    policy["Statement"] = [item for item in policy["Statement"] if item["Sid"] != "EraseVersions"]
    with pytest.raises(VaultDenied, match="s3:DeleteObjectVersion"):
        place._acting(place.gateway.role(policy)).delete(keys[0])


def test_a_second_try_of_a_put_is_still_harmless(place: Place) -> None:
    """A versioned bucket takes the same object twice on this server; it reads as one, and as intact."""
    run, keys = _run(place, 6)
    data = place.reader.get(keys[0])
    assert place.forge(keys[0], data) == 200
    assert _verified(place, run.run_id).ok
    assert list(find_replaced(place.custodian, keys[0])) == []


def test_init_keeps_versions_where_overwriting_cannot_be_refused(place: Place) -> None:
    """On this server `vault init` switches versions on, `vault check` is content with that and not without."""
    assert place.steps["versioning"] == "set"
    assert "overwriting" in check_bucket(place.owner, place.settings).passed
    place.gateway.client().put_bucket_versioning(Bucket=place.bucket, VersioningConfiguration={"Status": "Suspended"})
    try:
        (problem,) = [item for item in check_bucket(place.owner, place.settings).problems if item.name == "overwriting"]
        assert "haproxy" in problem.remedy
    finally:
        place.gateway.client().put_bucket_versioning(Bucket=place.bucket, VersioningConfiguration={"Status": "Enabled"})


def test_lifecycle_deletes_versions_too(gateway: Gateway) -> None:
    """With days of two seconds nothing of the content class is left in a bucket with versions, forged or hidden."""
    place = Place(gateway)
    _, keys = _run(place, 7)
    content = next(key for key in keys if key.startswith("content/"))
    assert place.forge(content) == 200
    rules = policies.lifecycle(PREFIX, Retention(io=4000, content=1, meta=8000))
    client = gateway.client()
    client.put_bucket_lifecycle_configuration(Bucket=place.bucket, LifecycleConfiguration=rules)
    deadline = time.monotonic() + 60
    while "Versions" in client.list_object_versions(Bucket=place.bucket, Prefix=f"{PREFIX}/content/"):
        assert time.monotonic() < deadline, "versions of the content class stay"
        gateway.expire()
    assert len(list(place.reader.list("meta/"))) == 1


@contextlib.contextmanager
def _door(gateway: Gateway, folder: Path) -> Iterator[str]:
    """HAProxy with the rules that we print, in front of the server."""
    if shutil.which("haproxy") is None:
        if _REQUIRED:
            pytest.fail("not installed: haproxy")
        pytest.skip("not installed: haproxy")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    pem = folder / "vault.pem"
    pem.write_bytes(Path(gateway.ca).with_name("tls.pem").read_bytes())
    rules = haproxy(gateway.http.removeprefix("http://"))
    assert ":443 ssl crt /etc/haproxy/vault.pem" in rules
    rules = rules.replace(":443 ssl crt /etc/haproxy/vault.pem", f"127.0.0.1:{port} ssl crt {pem}")
    timeouts = "defaults\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n"
    (folder / "haproxy.cfg").write_text(f"{timeouts}\n{rules}")
    process = subprocess.Popen(["haproxy", "-db", "-f", str(folder / "haproxy.cfg")], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while True:
            assert process.poll() is None, "haproxy did not start"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert time.monotonic() < deadline, "haproxy does not listen"
            time.sleep(0.02)
        yield f"https://localhost:{port}"
    finally:
        process.terminate()
        process.wait(20)


def test_behind_the_printed_door_overwriting_is_refused(gateway: Gateway, tmp_path: Path) -> None:
    """Through the proxy a run is stored, read and erased as ever, and no way to write over an object is left."""
    with _door(gateway, tmp_path) as endpoint:
        behind = copy.copy(gateway)
        behind.https = endpoint
        place = Place(behind, gateway.bucket())
        run, keys = _run(place, 8)
        assert _verified(place, run.run_id).ok
        thief = behind.client(place.thief)
        where = {"Bucket": place.bucket, "Key": f"{PREFIX}/{keys[0]}"}
        assert place.forge(keys[0]) == 403
        assert _status(thief.put_object, **where, Body=b"x", IfNoneMatch="*") == 412
        assert _status(thief.put_object, **where, Body=b"x", IfNoneMatch='"an-etag", *') == 403
        assert _status(thief.put_object, **where, Body=b"x", IfNoneMatch='"an-etag"') == 403
        assert _status(thief.copy_object, **where, CopySource={"Bucket": place.bucket, "Key": keys[1]}) == 403
        assert _status(thief.create_multipart_upload, **where) == 403
        assert _verified(place, run.run_id).ok
        form = behind.client(place.thief).generate_presigned_post(place.bucket, where["Key"])
        assert _posted(form, gateway.ca) == 403
        assert _posted(form | {"url": form["url"].replace(endpoint, gateway.https)}, gateway.ca) == 204
        assert not _verified(place, run.run_id).ok  # so the form was good, and it was the door that kept it out
        report = check_bucket(place.custodian, place.settings)
        assert "overwriting" in report.passed
        carry_out(place.custodian, plan_for_runs(place.custodian, [run.run_id]), Audit(place.custodian, reason="asked"))
        assert plan_for_runs(place.custodian, [run.run_id]).objects == ()


def _posted(form: dict[str, Any], ca: str) -> int:
    """The status of a form's upload, as a browser makes it."""
    with httpx.Client(verify=ssl.create_default_context(cafile=ca)) as client:
        return client.post(form["url"], data=form["fields"], files={"file": b"forged"}).status_code
