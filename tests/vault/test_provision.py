"""The roles that `vault init` makes."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from sealtrace.cli import run
from sealtrace.errors import VaultDenied
from sealtrace.settings import Settings
from sealtrace.vault import S3Store, create_roles, policies
from vault.gateway import Gateway

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
PRINCIPAL = "arn:aws:iam::123456789012:root"


@pytest.fixture
def iam(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an IAM that the settings take for AWS's own."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1", "SEALTRACE_REGION": "us-east-1", "SEALTRACE_ADDRESSING_STYLE": "path",
        "SEALTRACE_KMS_KEY_ID": KEY,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    client: Any = boto3.client("iam")
    yield client
    client.close()
    server.stop()


def test_the_roles_are_the_shipped_policies(iam: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The command makes three roles for this bucket, each with its policy and for the named principal only."""
    command = ["vault", "init", "--vault", "s3://my-vault/team", "--create-roles", PRINCIPAL]
    assert run(command) == 0
    assert "role sealtrace-writer-my-vault: made" in capsys.readouterr().out
    for name, policy in policies.ROLES.items():
        role = f"sealtrace-{name}-my-vault"
        trust = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
        assert trust["Statement"][0]["Principal"] == {"AWS": [PRINCIPAL]}
        found = iam.get_role_policy(RoleName=role, PolicyName="sealtrace")["PolicyDocument"]
        assert found == policy("my-vault", "team", kms_key_arn=KEY)
    assert run(command) == 0
    assert "role sealtrace-reader-my-vault: there already; its policy is set" in capsys.readouterr().out


def test_without_being_asked_it_says_that_roles_are_not_made(iam: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The output names both ways to the roles, and none is made."""
    assert run(["vault", "init", "--vault", "s3://my-vault"]) == 0
    out = capsys.readouterr().out
    assert "--create-roles" in out
    assert "--print" in out
    assert iam.list_roles()["Roles"] == []


def test_names_of_roles_fit_and_differ(iam: Any) -> None:
    """The longest buckets' roles have names IAM takes, and two of them do not share a role."""
    settings = Settings(region="us-east-1")
    buckets = ["b" * 62 + "1", "b" * 62 + "2"]
    names = [name for bucket in buckets for name, _ in create_roles(S3Store(bucket, "", settings), settings, PRINCIPAL)]
    assert len(set(names)) == 6
    assert all(len(name) <= 64 for name in names)


def test_the_roles_work_on_a_real_server(gateway: Gateway) -> None:
    """Made by the server's owner, taken over STS: the writer puts and does not list, the reader the other way round."""
    bucket = gateway.bucket()
    settings = Settings.model_validate({"endpoint_url": gateway.https, "ca_bundle": gateway.ca, "region": "us-east-1"})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.user("admin").items():
            patch.setenv(name.upper(), value)
        steps = create_roles(S3Store(bucket, "", settings), settings, "arn:aws:iam:::user/admin")
    stores = {}
    for role, (name, outcome) in zip(policies.ROLES, steps, strict=True):
        assert outcome == "made"
        stores[role] = gateway.store(bucket, gateway.taken(name))
    stores["writer"].put("io/a", b"x", sha256=b"")
    assert [item.key for item in stores["reader"].list("")] == ["io/a"]
    for role, refused in (("writer", lambda s: list(s.list(""))), ("reader", lambda s: s.delete("io/a"))):
        with pytest.raises(VaultDenied):
            refused(stores[role])
    stores["custodian"].delete("io/a")
    assert list(stores["reader"].list("")) == []


def test_where_roles_may_not_be_made_it_says_what_else(gateway: Gateway) -> None:
    """Credentials without the right are told of the templates."""
    settings = Settings.model_validate({"endpoint_url": gateway.https, "ca_bundle": gateway.ca, "region": "us-east-1"})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.user("reader").items():
            patch.setenv(name.upper(), value)
        with pytest.raises(VaultDenied, match="template"):
            create_roles(S3Store("any-bucket", "", settings), settings, "arn:aws:iam:::user/admin")


def test_the_policies_are_plain_json(capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed for each role is what the roles get."""
    assert run(["vault", "init", "--vault", "s3://my-vault", "--print", "policies"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {name: printed[name] for name in policies.ROLES} == {
        name: policy("my-vault") for name, policy in policies.ROLES.items()
    }
