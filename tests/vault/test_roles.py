"""The shipped policies on a server that enforces them."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import time
from typing import Any

import botocore.auth
import pytest
from botocore import UNSIGNED
from botocore.exceptions import ClientError

from sealtrace.errors import VaultDenied, VaultError, VaultUnavailable
from sealtrace.event import EventStatus, Kind
from sealtrace.settings import Retention
from sealtrace.vault import VaultReader, policies
from sealtrace.vault.stores import S3Store
from vault.gateway import Gateway
from vault.records import RUN, Conversation, plain
from vault.test_reader import in_days

PREFIX = "team/runs"


class Place:
    """A bucket with the shipped policies, and a store per role."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.bucket = gateway.bucket()
        self.owner = gateway.client()
        self.writer_credentials = gateway.role(policies.writer_policy(self.bucket, PREFIX))
        self.reader_credentials = gateway.role(policies.reader_policy(self.bucket, PREFIX))
        self.writer = gateway.store(self.bucket, self.writer_credentials, PREFIX)
        self.reader = gateway.store(self.bucket, self.reader_credentials, PREFIX)

    def raw(self, credentials: dict[str, str]) -> Any:
        """A plain client with a role's credentials."""
        return self.gateway.client(credentials)


@pytest.fixture(scope="module")
def place(gateway: Gateway) -> Place:
    """One bucket for the tests of this module; each stores runs of its own."""
    return Place(gateway)


def _status(call: Any, **arguments: Any) -> int:
    try:
        return int(call(**arguments)["ResponseMetadata"]["HTTPStatusCode"])
    except ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"])


def _run(place: Place, number: int) -> tuple[Conversation, str, str]:
    run = Conversation(4, seed=number, run_id=f"trace_{number:032x}")
    seal = run.store(place.writer)
    return run, run.run_id, f"{PREFIX}/{seal.manifest_key}"


def test_a_run_is_written_by_one_role_and_read_by_the_other(place: Place) -> None:
    """With the shipped policies the whole path works, and storing the same again is harmless."""
    run, run_id, _ = _run(place, 1)
    (record,) = VaultReader(place.reader).records(run_id)
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    data = place.reader.get(record.objects[0].key)
    place.writer.put(record.objects[0].key, data, sha256=hashlib.sha256(data).digest())


def test_the_writer_can_only_put(place: Place) -> None:
    """Get, head, list, delete, ACL and another prefix are refused to the writer."""
    _, _, key = _run(place, 2)
    raw = place.raw(place.writer_credentials)
    where = {"Bucket": place.bucket, "Key": key}
    assert _status(raw.get_object, **where) == 403
    assert _status(raw.head_object, **where) == 403
    assert _status(raw.list_objects_v2, Bucket=place.bucket, Prefix=f"{PREFIX}/") == 403
    assert _status(raw.delete_object, **where) == 403
    assert _status(raw.put_object_acl, ACL="public-read", **where) == 403
    assert _status(raw.get_object_acl, **where) == 403
    assert _status(raw.put_bucket_policy, Bucket=place.bucket, Policy="{}") == 403
    assert _status(raw.put_object, Bucket=place.bucket, Key="elsewhere/x", Body=b"x") == 403
    with pytest.raises(VaultDenied, match="role's policy"):
        place.writer.get(key.removeprefix(f"{PREFIX}/"))


def test_a_trial_put_tells_a_writer_from_a_stranger_and_leaves_nothing(place: Place) -> None:
    """The writer's put would be taken, by the server's own word, and nothing is stored; a reader's is refused."""
    place.writer.try_put("io/v1/trial")
    with pytest.raises(VaultDenied) as refused:
        place.reader.try_put("io/v1/trial")
    assert refused.value.reason == "AccessDenied"
    assert list(place.reader.list("io/v1/trial")) == []


def test_nothing_is_overwritten(place: Place) -> None:
    """Other bytes under a taken key are refused, and the first bytes stay."""
    _, _, key = _run(place, 3)
    raw = place.raw(place.writer_credentials)
    assert _status(raw.put_object, Bucket=place.bucket, Key=key, Body=b"forged", IfNoneMatch="*") == 412
    assert place.reader.get(key.removeprefix(f"{PREFIX}/")) != b"forged"


def test_the_reader_can_only_read(place: Place) -> None:
    """Put, delete and listing beyond the prefix are refused to the reader."""
    _, _, key = _run(place, 4)
    raw = place.raw(place.reader_credentials)
    assert _status(raw.put_object, Bucket=place.bucket, Key=f"{PREFIX}/io/new", Body=b"x") == 403
    assert _status(raw.delete_object, Bucket=place.bucket, Key=key) == 403
    assert _status(raw.put_object_acl, ACL="public-read", Bucket=place.bucket, Key=key) == 403
    assert _status(raw.list_objects_v2, Bucket=place.bucket) == 403
    with pytest.raises(VaultDenied):
        place.reader.delete(key.removeprefix(f"{PREFIX}/"))


def test_strangers_are_refused(place: Place) -> None:
    """No credentials, a wrong signature and another user get nothing."""
    _, _, key = _run(place, 5)
    wrong = {"aws_access_key_id": "ADMINKEY", "aws_secret_access_key": "wrong"}
    anonymous = place.gateway.client()
    anonymous.meta.events.register("choose-signer.s3.*", lambda **_: UNSIGNED)
    for raw in (place.raw(wrong), place.raw(place.gateway.user("reader")), anonymous):
        assert _status(raw.get_object, Bucket=place.bucket, Key=key) == 403


def test_the_custodian_erases_and_accounts_for_it(place: Place) -> None:
    """The custodian lists, deletes and writes audit lines, and writes nowhere else."""
    _, run_id, key = _run(place, 6)
    raw = place.raw(place.gateway.role(policies.custodian_policy(place.bucket, PREFIX)))
    assert _status(raw.list_objects_v2, Bucket=place.bucket, Prefix=f"{PREFIX}/io/") == 200
    assert _status(raw.put_object, Bucket=place.bucket, Key=f"{PREFIX}/meta/v1/audit/2026/x.json", Body=b"x") == 200
    assert _status(raw.put_object, Bucket=place.bucket, Key=f"{PREFIX}/io/x", Body=b"x") == 403
    assert _status(raw.delete_object, Bucket=place.bucket, Key=key) == 204
    assert VaultReader(place.reader).records(run_id)[0].partial


def test_plain_http_is_refused_by_the_bucket(gateway: Gateway) -> None:
    """With the bucket policy even the owner gets nothing over plain HTTP, and all over TLS."""
    place = Place(gateway)
    _, _, key = _run(place, 7)
    policy = policies.bucket_policy(place.bucket, PREFIX, conditional_writes=False)
    place.owner.put_bucket_policy(Bucket=place.bucket, Policy=json.dumps(policy))
    for credentials in (place.reader_credentials, gateway.user("admin")):
        plain_http = gateway.client(credentials, secure=False)
        assert _status(plain_http.get_object, Bucket=place.bucket, Key=key) == 403
    assert _status(place.raw(place.reader_credentials).get_object, Bucket=place.bucket, Key=key) == 200
    assert _status(place.raw(place.writer_credentials).put_object, Bucket=place.bucket, Key=f"{PREFIX}/io/x") == 200


def test_every_object_must_be_encrypted_with_the_key(gateway: Gateway) -> None:
    """No encryption and another key are refused; the named key works, and a key nobody has does not."""
    place = Place(gateway)
    policy = policies.bucket_policy(place.bucket, PREFIX, kms_key_id=gateway.kms_key, conditional_writes=False)
    place.owner.put_bucket_policy(Bucket=place.bucket, Policy=json.dumps(policy))

    def store(**settings: Any) -> S3Store:
        return gateway.store(place.bucket, place.writer_credentials, PREFIX, **settings)

    run = Conversation(2)
    with pytest.raises(VaultError, match="role's policy"):
        store().put("io/x", b"x", sha256=hashlib.sha256(b"x").digest())
    with pytest.raises(VaultError, match="KMS"):
        store(kms_key_id="unknown-key").put("io/x", b"x", sha256=hashlib.sha256(b"x").digest())
    run.store(store(kms_key_id=gateway.kms_key))
    (record,) = VaultReader(place.reader).records(RUN)
    assert record.gaps() == []
    head = place.owner.head_object(Bucket=place.bucket, Key=f"{PREFIX}/{record.objects[0].key}")
    assert head["ServerSideEncryption"] == "aws:kms"


def test_lifecycle_deletes_content_and_keeps_the_rest(gateway: Gateway) -> None:
    """With days of two seconds the content class really goes, meta stays, and the loader says expired."""
    place = Place(gateway)
    _, run_id, _ = _run(place, 9)
    rules = policies.lifecycle(PREFIX, Retention(io=4000, content=1, meta=8000))
    place.owner.put_bucket_lifecycle_configuration(Bucket=place.bucket, LifecycleConfiguration=rules)
    deadline = time.monotonic() + 60
    while list(place.reader.list("content/")) and time.monotonic() < deadline:
        gateway.expire()
    assert list(place.reader.list("content/")) == []
    assert len(list(place.reader.list("meta/"))) == 1
    (record,) = VaultReader(place.reader, clock=in_days(8)).records(run_id)
    statuses = {event.kind: event.status for event in record.events()}
    assert statuses[Kind.GENERATION] is EventStatus.PAYLOAD_EXPIRED
    assert statuses[Kind.INPUT] is EventStatus.RECORDED


def test_one_event_of_ten_thousand_is_one_request(place: Place) -> None:
    """One event of a run of ten thousand costs one ranged GET, as the server itself counts them."""
    run = Conversation(3400, seed=10, run_id=f"trace_{10:032x}", tool_bytes=500)
    assert len(run.events) > 10_000
    run.store(place.writer)
    (record,) = VaultReader(place.reader).records(run.run_id)
    assert record.manifest is not None
    place.gateway.requests(place.bucket, "get_obj")
    assert record.payload(5102) == plain(run.events[5102].payload)
    (request,) = place.gateway.requests(place.bucket, "get_obj")
    assert f"{10:032x}" in request["uri"]
    assert request["http_status"] == "206"
    assert request["bytes_sent"] < 60_000


def test_a_wrong_clock_and_a_bucket_that_went_are_told_apart(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's own words for either, each with what to do; the first may pass, the second not by itself."""
    place = Place(gateway)
    now = botocore.auth.get_current_datetime
    with monkeypatch.context() as patch:
        patch.setattr(
            botocore.auth, "get_current_datetime", lambda *given, **how: now(*given, **how) + dt.timedelta(hours=2)
        )
        with pytest.raises(VaultUnavailable, match="clock is wrong") as skewed:
            place.writer.put("io/x", b"x", sha256=hashlib.sha256(b"x").digest())
    assert skewed.value.reason == "RequestTimeTooSkewed"
    place.owner.delete_bucket(Bucket=place.bucket)
    with pytest.raises(VaultDenied, match="no such bucket") as gone:
        place.writer.put("io/x", b"x", sha256=hashlib.sha256(b"x").digest())
    assert gone.value.reason == "NoSuchBucket"
