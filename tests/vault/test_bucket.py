"""Setting a bucket up, and finding what is wrong with one."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from sealtrace.errors import VaultDenied
from sealtrace.settings import Retention, Settings
from sealtrace.vault import BucketReport, check_bucket, init_bucket, policies
from sealtrace.vault.stores import S3Store

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
PREFIX = "team"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 server that keeps every kind of bucket setting."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


class Aws:
    """A vault's bucket that thinks it is on AWS."""

    def __init__(self, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        self.settings = Settings(region="us-east-1", kms_key_id=KEY, addressing_style="path")
        self.name = f"v-{uuid.uuid4().hex[:10]}"
        self.store = S3Store(self.name, PREFIX, self.settings)
        self.client: Any = boto3.client("s3", region_name="us-east-1")

    def check(self) -> BucketReport:
        """Check it."""
        return check_bucket(self.store, self.settings)

    def rules(self) -> list[dict[str, Any]]:
        """The lifecycle `vault init` sets."""
        found: list[dict[str, Any]] = policies.lifecycle(PREFIX, self.settings.retention)["Rules"]
        return found

    def set_rules(self, rules: list[dict[str, Any]]) -> None:
        """Set another lifecycle."""
        self.client.put_bucket_lifecycle_configuration(Bucket=self.name, LifecycleConfiguration={"Rules": rules})

    def set_statements(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        """Change the bucket policy's statements."""
        policy = json.loads(self.client.get_bucket_policy(Bucket=self.name)["Policy"])
        policy["Statement"] = change(policy["Statement"])
        self.client.put_bucket_policy(Bucket=self.name, Policy=json.dumps(policy))


@pytest.fixture
def aws(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """A bucket as `vault init` leaves it, access logging added."""
    place = Aws(endpoint, monkeypatch)
    init_bucket(place.store, place.settings)
    place.client.create_bucket(Bucket=f"{place.name}-log")
    place.client.put_bucket_acl(Bucket=f"{place.name}-log", ACL="log-delivery-write")
    place.client.put_bucket_logging(
        Bucket=place.name,
        BucketLoggingStatus={"LoggingEnabled": {"TargetBucket": f"{place.name}-log", "TargetPrefix": "x"}},
    )
    return place


def test_what_init_makes_passes_the_check(aws: Aws) -> None:
    """A bucket set up by `init` has no problem, and every check could be made."""
    report = aws.check()
    assert report.problems == ()
    assert report.skipped == ()
    assert len(report.passed) == 14


def test_init_again_changes_nothing_and_keeps_what_is_not_ours(aws: Aws) -> None:
    """Rules and statements of others survive a second `init`, and nothing of ours is there twice."""
    other_rule = {"ID": "theirs", "Status": "Enabled", "Filter": {"Prefix": "x/"}, "Expiration": {"Days": 3}}
    aws.set_rules([*aws.rules(), other_rule])
    theirs = {"Sid": "Theirs", "Effect": "Deny", "Principal": "*", "Action": "s3:Get*", "Resource": "arn:aws:s3:::x/*"}
    aws.set_statements(lambda found: [*found, theirs])
    steps = dict(init_bucket(aws.store, aws.settings))
    assert steps["bucket"] == "there already"
    rules = aws.client.get_bucket_lifecycle_configuration(Bucket=aws.name)["Rules"]
    ours = [f"sealtrace-{klass}" for klass in ("content", "io", "keys", "meta")]
    assert sorted(rule["ID"] for rule in rules) == [*ours, "theirs"]
    statements = json.loads(aws.client.get_bucket_policy(Bucket=aws.name)["Policy"])["Statement"]
    assert [item["Sid"] for item in statements].count("Theirs") == 1
    assert len({item["Sid"] for item in statements}) == len(statements)
    assert aws.check().ok


def _public_block(aws: Aws) -> None:
    block = policies.public_access_block() | {"BlockPublicPolicy": False}
    aws.client.put_public_access_block(Bucket=aws.name, PublicAccessBlockConfiguration=block)


def _acl(aws: Aws) -> None:
    aws.client.delete_public_access_block(Bucket=aws.name)
    aws.client.put_bucket_ownership_controls(
        Bucket=aws.name, OwnershipControls={"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
    )
    aws.client.put_bucket_acl(Bucket=aws.name, ACL="public-read")


def _versioned(aws: Aws) -> None:
    aws.client.put_bucket_versioning(Bucket=aws.name, VersioningConfiguration={"Status": "Enabled"})
    aws.set_rules([{k: v for k, v in rule.items() if "Noncurrent" not in k} for rule in aws.rules()])


def _spell_bool(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return json.loads(json.dumps(found).replace("BoolIfExists", "Bool"))  # type: ignore[no-any-return]


def _narrow(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item | {"Resource": f"arn:aws:s3:::b/{PREFIX}/io/*"} if "Http" in item["Sid"] else item for item in found]


def _without(word: str) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda found: [item for item in found if word not in item["Sid"]]


def _allow_all(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        *found,
        {"Sid": "Open", "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"},
    ]


def _encrypt(aws: Aws, **default: Any) -> None:
    rule = {"ApplyServerSideEncryptionByDefault": default}
    aws.client.put_bucket_encryption(Bucket=aws.name, ServerSideEncryptionConfiguration={"Rules": [rule]})


def _change_rule(aws: Aws, **change: Any) -> None:
    aws.set_rules([rule | change if "content" in rule["ID"] else rule for rule in aws.rules()])


_EVERYTHING = {"ID": "all", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 3}}

_SEEDED: list[tuple[str, str, Callable[[Aws], object]]] = [
    ("public-access-block", "BlockPublicPolicy", _public_block),
    ("public-access-block", "RestrictPublicBuckets", lambda a: a.client.delete_public_access_block(Bucket=a.name)),
    ("public-acl", "READ", _acl),
    ("public-policy", "s3:GetObject", lambda a: a.set_statements(_allow_all)),
    ("ownership", "uploads", lambda a: a.client.delete_bucket_ownership_controls(Bucket=a.name)),
    ("plain-http", "not refused", lambda a: a.client.delete_bucket_policy(Bucket=a.name)),
    ("plain-http", "only where", lambda a: a.set_statements(_spell_bool)),
    ("plain-http", "a part", lambda a: a.set_statements(_narrow)),
    ("encrypted-puts", "header", lambda a: a.set_statements(_without("RefuseUnencrypted"))),
    ("encrypted-puts", "another KMS key", lambda a: a.set_statements(_without("RefuseOtherKeys"))),
    ("default-encryption", "AES256", lambda a: _encrypt(a, SSEAlgorithm="AES256")),
    ("default-encryption", "another", lambda a: _encrypt(a, SSEAlgorithm="aws:kms", KMSMasterKeyID="other")),
    ("overwriting", "overwrites", lambda a: a.set_statements(_without("RefuseOverwriting"))),
    ("versioning", "bytes stay", _versioned),
    ("lifecycle", "ever deletes", lambda a: a.client.delete_bucket_lifecycle(Bucket=a.name)),
    ("lifecycle", "content", lambda a: a.set_rules([rule for rule in a.rules() if "content" not in rule["ID"]])),
    ("lifecycle", "content", lambda a: _change_rule(a, Status="Disabled")),
    ("lifecycle", "90 days instead of 7", lambda a: _change_rule(a, Expiration={"Days": 90})),
    ("lifecycle", "1 days instead of 7", lambda a: _change_rule(a, Expiration={"Days": 1})),
    ("lifecycle", "content", lambda a: _change_rule(a, Filter={"Prefix": "content/"})),
    (
        "early-expiry", "'all'",
        lambda a: a.set_rules([*a.rules(), _EVERYTHING]),
    ),
    (
        "multipart", "never finished",
        lambda a: a.set_rules([{k: v for k, v in rule.items() if "Abort" not in k} for rule in a.rules()]),
    ),
    ("access-log", "who read", lambda a: a.client.put_bucket_logging(Bucket=a.name, BucketLoggingStatus={})),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words", "spoil"), _SEEDED, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(_SEEDED)])
def test_each_misconfiguration_is_found(aws: Aws, name: str, words: str, spoil: Callable[[Aws], object]) -> None:
    """One thing made wrong is found by its own check, with words for it and what to do."""
    spoil(aws)
    report = aws.check()
    assert not report.ok
    found = [problem for problem in report.problems if problem.name == name]
    assert any(words in problem.message for problem in found), report.problems
    assert all(problem.remedy for problem in report.problems)


def test_a_default_object_lock_is_found(aws: Aws) -> None:
    """A bucket whose lock would keep payloads from being erased is not fit."""
    aws.name = f"{aws.name}-locked"
    aws.client.create_bucket(Bucket=aws.name, ObjectLockEnabledForBucket=True)
    aws.client.put_object_lock_configuration(
        Bucket=aws.name,
        ObjectLockConfiguration={
            "ObjectLockEnabled": "Enabled",
            "Rule": {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 30}},
        },
    )
    report = check_bucket(S3Store(aws.name, PREFIX, aws.settings), aws.settings)
    assert "object-lock" in [problem.name for problem in report.problems]


def test_a_missing_bucket_is_an_error_and_not_a_report(aws: Aws) -> None:
    """Checking what is not there says how to make it."""
    with pytest.raises(VaultDenied, match="vault init"):
        check_bucket(S3Store("nobody-has-this", "", aws.settings), aws.settings)


def test_elsewhere_than_aws_versions_take_the_place_of_the_statement(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another server the statement only AWS understands is not written, and versions are kept instead."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    settings = Settings(endpoint_url=endpoint, region="us-east-1", addressing_style="path", retention=Retention(io=9))
    store = S3Store(f"v-{uuid.uuid4().hex[:10]}", "", settings)
    init_bucket(store, settings)
    report = check_bucket(store, settings)
    assert [problem.name for problem in report.problems] == ["access-log"]
    assert "overwriting" in report.passed
    assert report.skipped == ()
    policy = json.loads(store.client().get_bucket_policy(Bucket=store.bucket)["Policy"])
    assert "if-none-match" not in json.dumps(policy)


def test_on_the_gateway_init_and_check_agree(gateway: Any) -> None:
    """On a real server what it supports is set and found right; the rest is skipped with a reason."""
    settings = {"endpoint_url": gateway.https, "ca_bundle": gateway.ca, "region": "us-east-1"}
    store = gateway.store(f"v-{uuid.uuid4().hex[:10]}", gateway.user("admin"), PREFIX)
    parsed = Settings.model_validate(settings)
    steps = dict(init_bucket(store, parsed))
    assert steps["lifecycle"] == steps["policy"] == "set"
    report = check_bucket(store, parsed)
    assert {"plain-http", "lifecycle", "multipart", "public-access-block"} <= set(report.passed), report
    assert all(reason for _, reason in report.skipped)
