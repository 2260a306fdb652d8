"""The S3 store against an S3 server in this process, and against servers that misbehave."""

from __future__ import annotations

import base64
import hashlib
import http.server
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from sealtrace.errors import ObjectNotFound, RecordDamaged, VaultDenied, VaultUnavailable
from sealtrace.settings import Settings
from sealtrace.vault import VaultReader
from sealtrace.vault.stores import S3Store, clients
from sealtrace.vault.stores.base import MAX_OBJECT
from vault.records import RUN, Conversation, plain

BUCKET = "vault-bucket"


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """Address of an S3 server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def _settings(endpoint: str, **more: Any) -> Settings:
    return Settings(endpoint_url=endpoint, region="us-east-1", addressing_style="path", **more)


@pytest.fixture
def client(moto: str) -> Iterator[Any]:
    """A plain client of that server, with an empty bucket."""
    out = boto3.client("s3", endpoint_url=moto, region_name="us-east-1")
    out.create_bucket(Bucket=BUCKET)
    yield out
    out.close()
    urllib.request.urlopen(urllib.request.Request(f"{moto}/moto-api/reset", method="POST")).close()


def _put(store: S3Store, key: str, data: bytes) -> None:
    store.put(key, data, sha256=hashlib.sha256(data).digest())


def test_a_record_goes_there_and_back(moto: str, client: Any) -> None:
    """A whole record is written to a bucket under the prefix and read back equal."""
    run, store = Conversation(10), S3Store(BUCKET, "team/a", _settings(moto))
    seal = run.store(store)
    keys = [item["Key"] for item in client.list_objects_v2(Bucket=BUCKET)["Contents"]]
    assert seal.objects == len(keys) == 3
    assert all(key.startswith("team/a/") for key in keys)
    (record,) = VaultReader(store).records(RUN)
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    assert record.payload(2) == plain(run.events[2].payload)


def test_stored_already_counts_as_stored(moto: str, client: Any) -> None:
    """A second put of a key is no error and changes nothing: 412 means the bytes are there."""
    store = S3Store(BUCKET, "", _settings(moto))
    _put(store, "a/b", b"one")
    _put(store, "a/b", b"one")
    assert store.get("a/b") == b"one"
    assert store.get("a/b", start=1, length=1) == b"n"


def test_listing_deleting_and_missing(moto: str, client: Any) -> None:
    """Listing is by prefix without the vault's own; a deleted object is not found."""
    store = S3Store(BUCKET, "p", _settings(moto))
    for name in ("io/1", "io/2", "meta/1"):
        _put(store, name, b"x")
    assert [item.key for item in store.list("io/")] == ["io/1", "io/2"]
    store.delete("io/1")
    with pytest.raises(ObjectNotFound):
        store.get("io/1")


def test_listing_goes_on_beyond_a_page(moto: str, client: Any) -> None:
    """More objects than fit one answer are all listed."""
    for number in range(1005):
        client.put_object(Bucket=BUCKET, Key=f"io/{number:05d}", Body=b"")
    assert len(list(S3Store(BUCKET, "", _settings(moto)).list("io/"))) == 1005


def test_the_named_kms_key_is_used(moto: str, client: Any) -> None:
    """With a key named, every object asks for encryption with it."""
    _put(S3Store(BUCKET, "", _settings(moto, kms_key_id="key-1")), "a/b", b"x")
    head = client.head_object(Bucket=BUCKET, Key="a/b")
    assert head["ServerSideEncryption"] == "aws:kms"
    assert head["SSEKMSKeyId"].endswith("key-1")


def test_an_object_says_what_it_holds(moto: str, client: Any) -> None:
    """JSON and gzip are opened by whoever fetches them; what is sealed is bytes and nothing else."""
    store = S3Store(BUCKET, "", _settings(moto))
    types = {
        "a.json": "application/json",
        "a.jsonl.gz": "application/gzip",
        "a.jsonl.gz.enc": "application/octet-stream",
    }
    for key, wanted in types.items():
        _put(store, key, b"x")
        assert client.head_object(Bucket=BUCKET, Key=key)["ContentType"] == wanted


def test_a_giant_object_is_refused_unread(moto: str, client: Any) -> None:
    """What nobody of ours wrote is not read into memory."""
    client.put_object(Bucket=BUCKET, Key="a/b", Body=bytes(MAX_OBJECT + 1))
    with pytest.raises(RecordDamaged, match="at most"):
        S3Store(BUCKET, "", _settings(moto)).get("a/b")


def test_a_missing_bucket_says_what_to_do(moto: str) -> None:
    """A bucket that is not there is an error that names it."""
    with pytest.raises(VaultDenied, match="no such bucket"):
        _put(S3Store("not-there", "", _settings(moto)), "a/b", b"x")


class _Scripted(http.server.BaseHTTPRequestHandler):
    """Answers each request with the next of `answers`; the last one stays."""

    answers: list[tuple[int, str]]
    seen: list[tuple[str, dict[str, str], bytes]]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        status, code = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        text = f"<Error><Code>{code}</Code><Message>m</Message></Error>".encode() if code else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def scripted() -> Iterator[Callable[..., tuple[str, list[Any]]]]:
    """Starts servers that give the answers they are told to."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def start(*answers: tuple[int, str]) -> tuple[str, list[Any]]:
        seen: list[Any] = []
        handler = type("Handler", (_Scripted,), {"answers": list(answers), "seen": seen})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}", seen

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_request_is_as_promised(scripted: Any) -> None:
    """One PUT, conditional, with the body's SHA-256 signed, the owner checked and no chunked coding."""
    endpoint, seen = scripted((200, ""))
    data = b"payload"
    _put(S3Store(BUCKET, "p", _settings(endpoint, expected_bucket_owner="123456789012")), "io/a.jsonl.gz", data)
    ((path, headers, body),) = seen
    digest = hashlib.sha256(data).digest()
    assert path == f"/{BUCKET}/p/io/a.jsonl.gz"
    assert body == data
    assert headers["if-none-match"] == "*"
    assert headers["x-amz-checksum-sha256"] == base64.b64encode(digest).decode()
    assert headers["x-amz-content-sha256"] in (digest.hex(), "UNSIGNED-PAYLOAD")
    assert headers["x-amz-expected-bucket-owner"] == "123456789012"
    assert headers["content-type"] == "application/gzip"
    assert "aws-chunked" not in headers.get("content-encoding", "")


@pytest.mark.parametrize(
    ("status", "code", "error", "words"),
    [
        (403, "AccessDenied", VaultDenied, "role's policy"),
        (403, "SignatureDoesNotMatch", VaultDenied, "role's policy"),
        (400, "ExpiredToken", VaultUnavailable, "expired"),
        (403, "RequestTimeTooSkewed", VaultUnavailable, "clock"),
        (503, "SlowDown", VaultUnavailable, "fewer"),
        (500, "InternalError", VaultUnavailable, "cannot take this now"),
        (409, "ConditionalRequestConflict", VaultUnavailable, "another writer"),
    ],
)
def test_refusals_say_what_to_do(scripted: Any, status: int, code: str, error: type[Exception], words: str) -> None:
    """Each kind of refusal is the right error with words that help."""
    endpoint, _ = scripted((status, code))
    with pytest.raises(error, match=words):
        _put(S3Store(BUCKET, "", _settings(endpoint, max_attempts=1)), "a/b", b"x")


def test_a_conflict_and_a_throttle_are_tried_again(scripted: Any) -> None:
    """409 and 503 are followed by another try, and 412 by none: it means stored."""
    endpoint, seen = scripted((409, "ConditionalRequestConflict"), (503, "SlowDown"), (412, "PreconditionFailed"))
    _put(S3Store(BUCKET, "", _settings(endpoint)), "a/b", b"x")
    assert len(seen) == 3


def test_a_black_hole_is_left_in_time() -> None:
    """A server that accepts and never answers costs the timeouts and no more."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen()
        endpoint = f"http://127.0.0.1:{hole.getsockname()[1]}"
        with pytest.raises(VaultUnavailable, match="does not answer"):
            _put(S3Store(BUCKET, "", _settings(endpoint, read_timeout=0.3, max_attempts=1)), "a/b", b"x")


def test_nobody_listening_is_unavailable() -> None:
    """A closed port is an outage, not a refusal."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(VaultUnavailable, match="does not answer"):
        _put(S3Store(BUCKET, "", _settings(endpoint, max_attempts=1)), "a/b", b"x")


def test_no_credentials_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Without credentials the error names boto3's chain."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(VaultDenied, match="default chain"):
        _put(S3Store(BUCKET, "", _settings("http://127.0.0.1:1")), "a/b", b"x")


def test_a_wrong_endpoint_or_bundle_says_so(tmp_path: Any) -> None:
    """A client that cannot be made is an error of the vault with the settings to look at."""
    with pytest.raises(VaultDenied, match="endpoint_url"):
        _put(S3Store(BUCKET, "", _settings("not a url")), "a/b", b"x")


def test_stores_of_the_same_place_share_a_client(moto: str, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a client is made from makes another: settings, credentials, the files they come from."""
    first = S3Store(BUCKET, "a", _settings(moto)).client()
    assert S3Store(BUCKET, "b", _settings(moto, kms_key_id="key-1")).client() is first
    assert S3Store(BUCKET, "a", _settings(moto, read_timeout=7)).client() is not first
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    other = S3Store(BUCKET, "a", _settings(moto)).client()
    assert other is not first
    assert other._request_signer._credentials.secret_key == "another"


def test_changed_credentials_are_read_again(moto: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A store of a long process takes the credentials that somebody wrote to boto3's file meanwhile."""
    file = tmp_path / "credentials"
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    store = S3Store(BUCKET, "", _settings(moto))
    for secret in ("a-secret", "another-secret"):
        file.write_text(f"[default]\naws_access_key_id = key\naws_secret_access_key = {secret}\n")
        assert store.client()._request_signer._credentials.secret_key == secret


def test_refused_as_expired_credentials_are_asked_for_anew(scripted: Any) -> None:
    """After an expired token the next try is made by a new client, and so with what the default chain says then."""
    endpoint, _ = scripted((400, "ExpiredToken"), (200, ""))
    store = S3Store(BUCKET, "", _settings(endpoint, max_attempts=1))
    before = store.client()
    with pytest.raises(VaultUnavailable, match="asked for anew"):
        _put(store, "a/b", b"x")
    _put(store, "a/b", b"x")
    assert store.client() is not before


def test_the_client_is_made_anew_after_a_fork(moto: str, client: Any) -> None:
    """A forked child stores with a connection of its own while the parent's stays usable."""
    store = S3Store(BUCKET, "", _settings(moto))
    _put(store, "a/parent", b"x")
    parents = store.client()
    clients._lock.acquire()  # as another thread would hold it; it does not live on in the child
    pid = os.fork()
    if pid == 0:
        try:
            _put(store, "a/child", b"y")
            os._exit(0 if store.client() is not parents else 3)
        except BaseException:
            os._exit(4)
    clients._lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert store.get("a/child") == b"y"
    assert store.client() is parents


def test_a_fork_while_boto3_is_imported_waits_for_it(moto: str, client: Any) -> None:
    """A process that forks while its first client is being made has children that can make theirs."""
    code = (
        "import hashlib, os, sys, threading\n"
        "from sealtrace.settings import Settings\n"
        "from sealtrace.vault.stores import S3Store\n"
        "settings = Settings(endpoint_url=sys.argv[1], region='us-east-1', addressing_style='path')\n"
        "store = S3Store('vault-bucket', '', settings)\n"
        "def put(key): store.put(key, b'x', sha256=hashlib.sha256(b'x').digest())\n"
        "begun = threading.Event()\n"
        "sys.addaudithook(lambda name, found: name == 'import' and found[0] == 'botocore.client' and begun.set())\n"
        "thread = threading.Thread(target=put, args=('a/parent',))\n"
        "thread.start()\n"
        "assert begun.wait(60)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    put('a/child')\n"
        "    os._exit(0)\n"
        "thread.join()\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, moto], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    found = client.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert [item["Key"] for item in found] == ["a/child", "a/parent"]
