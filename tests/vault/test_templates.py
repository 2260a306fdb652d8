"""The templates, by their vendors' own tools."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sealtrace.settings import Settings
from sealtrace.vault import cloudformation, policies, role_policy, terraform

KEY = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
KEYED = Settings(kms_key_id=KEY, envelope_key=f"kms:{KEY}", signing_key="kms:alias/manifests")


@pytest.mark.parametrize("settings", [Settings(), KEYED], ids=["plain", "kms"])
@pytest.mark.parametrize("prefix", ["", "team/a"])
def test_cloudformation_passes_its_linter(tmp_path: Path, settings: Settings, prefix: str) -> None:
    """cfn-lint has nothing to say about the template."""
    pytest.importorskip("cfnlint", reason="cfn-lint is not installed")
    path = tmp_path / "vault.json"
    path.write_text(json.dumps(cloudformation("my-vault", prefix, settings)))
    command = [str(Path(sys.executable).with_name("cfn-lint")), "--region", "eu-west-1", "--", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("settings", [Settings(), KEYED], ids=["plain", "kms"])
def test_terraform_reads_every_policy_as_meant(tmp_path: Path, settings: Settings) -> None:
    """Terraform itself evaluates every policy expression, to exactly the shipped policies."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not installed")
    document = terraform("my-vault", "team/a", settings)
    variables = {name: item | {"default": f"arn:aws:iam::1:role/{name}"} for name, item in document["variable"].items()}
    (tmp_path / "only.tf.json").write_text(json.dumps({"variable": variables}))
    roles = document["resource"]["aws_iam_role_policy"]
    expected = [
        (document["resource"]["aws_s3_bucket_policy"]["vault"]["policy"],
         policies.bucket_policy("my-vault", "team/a", kms_key_id=settings.kms_key_id)),
        *((roles[role]["policy"], role_policy(role, "my-vault", "team/a", settings)) for role in policies.ROLES),
    ]  # fmt: skip
    for text, policy in expected:
        assert json.loads(_evaluated(tmp_path, text)) == policy
    trust = json.loads(_evaluated(tmp_path, document["resource"]["aws_iam_role"]["reader"]["assume_role_policy"]))
    assert trust["Statement"][0]["Principal"] == {"AWS": "arn:aws:iam::1:role/reader_principal"}


def _evaluated(folder: Path, text: str) -> str:
    expression = re.fullmatch(r"\$\{(.*)\}", text)
    assert expression is not None
    environ = os.environ | {"HOME": str(folder), "CHECKPOINT_DISABLE": "1"}
    done = subprocess.run(
        ["terraform", "console"],
        input=expression[1],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environ,
    )
    assert done.returncode == 0, done.stderr
    value: Any = json.loads(done.stdout)
    return str(value)


def test_terraform_sets_what_init_sets() -> None:
    """Days, prefixes, encryption and the public access block are the ones of the policies."""
    resources = terraform("my-vault", "team/a", Settings(kms_key_id=KEY))["resource"]
    rules = resources["aws_s3_bucket_lifecycle_configuration"]["vault"]["rule"]
    assert {rule["filter"]["prefix"]: rule["expiration"]["days"] for rule in rules} == {
        "team/a/io/": 30,
        "team/a/content/": 7,
        "team/a/meta/": 400,
        "team/a/keys/": 31,
    }
    encryption = resources["aws_s3_bucket_server_side_encryption_configuration"]["vault"]["rule"]
    assert encryption["apply_server_side_encryption_by_default"] == {
        "sse_algorithm": "aws:kms",
        "kms_master_key_id": KEY,
    }
    block = resources["aws_s3_bucket_public_access_block"]["vault"]
    assert [value for name, value in block.items() if name != "bucket"] == [True] * 4


def test_a_bare_key_id_becomes_an_arn() -> None:
    """Policies need ARNs, also where the setting holds only the key's id."""
    text = json.dumps(cloudformation("my-vault", "", Settings(kms_key_id="1234")))
    assert "arn:aws:kms:*:*:key/1234" in text


def _grants(role: str, **settings: Any) -> dict[str, dict[str, Any]]:
    found = role_policy(role, "my-vault", "team", Settings(**settings))["Statement"]
    return {item["Sid"]: item for item in found if "kms:" in str(item["Action"])}


def test_roles_may_use_the_keys_that_the_settings_name() -> None:
    """The writer wraps and signs, the reader unwraps with the old keys too, and the custodian needs no key."""
    settings = {"envelope_key": f"kms:{KEY}", "signing_key": "kms:5678", "previous_envelope_keys": ("kms:9", "file:/x")}
    writer = _grants("writer", **settings)
    assert (writer["Wrap"]["Action"], writer["Wrap"]["Resource"]) == ("kms:Encrypt", KEY)
    assert writer["Sign"]["Action"] == ["kms:Sign", "kms:GetPublicKey"]
    assert writer["Sign"]["Resource"] == "arn:aws:kms:*:*:key/5678"
    reader = _grants("reader", **settings)
    assert [item["Resource"] for item in reader.values()] == [KEY, "arn:aws:kms:*:*:key/9"]
    assert _grants("custodian", **settings) == _grants("writer", envelope_key="file:/x", signing_key="/k.pem") == {}


def test_an_alias_becomes_a_condition() -> None:
    """Policies cannot name a key by its alias, so they ask for it."""
    for name, resource in (
        ("alias/a", "arn:aws:kms:*:*:key/*"),
        ("arn:aws:kms:eu-central-1:123456789012:alias/a", "arn:aws:kms:eu-central-1:123456789012:key/*"),
    ):
        (grant,) = _grants("reader", envelope_key=f"kms:{name}").values()
        assert grant["Resource"] == resource
        assert grant["Condition"] == {"ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/a"}}


def test_a_deleted_key_is_gone_after_a_day() -> None:
    """However long old versions are kept, a wrapped key's is kept a day."""
    rules = policies.lifecycle("team", Settings().retention, version_days=30)["Rules"]
    days = {rule["ID"]: rule["NoncurrentVersionExpiration"]["NoncurrentDays"] for rule in rules}
    assert days == {"sealtrace-io": 30, "sealtrace-content": 30, "sealtrace-meta": 30, "sealtrace-keys": 1}
