"""A running radosgw and what tests ask of it: buckets, roles, short-lived credentials."""

from __future__ import annotations

import json
import socket
import subprocess
import uuid
from typing import Any

import boto3
from botocore.config import Config

from sealtrace.settings import Settings
from sealtrace.vault.stores import S3Store

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": ["arn:aws:iam:::user/admin"]}, "Action": ["sts:AssumeRole"]}
    ],
}

_UNKNOWN = {"s3:GetBucketOwnershipControls", "s3:GetEncryptionConfiguration"}
"""Actions of AWS that this server does not know and refuses to store."""


class ActingStore(S3Store):
    """An S3 store that acts with given credentials instead of the process's."""

    def __init__(self, bucket: str, prefix: str, settings: Settings, credentials: dict[str, str]) -> None:
        super().__init__(bucket, prefix, settings)
        self._credentials = credentials

    def _session(self) -> Any:
        return boto3.session.Session(**self._credentials)


class Gateway:
    """The server, as its start script described it."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.http: str = about["http"]
        self.https: str = about["https"]
        self.ca: str = about["ca"]
        self.kms_key: str = about["kms_key"]
        self.opslog: str = about["opslog"]
        self._conf: str = about["conf"]
        self._users: dict[str, dict[str, str]] = about["users"]

    def client(self, credentials: dict[str, str] | None = None, *, service: str = "s3", secure: bool = True) -> Any:
        """A plain client, the bucket owner's by default."""
        return boto3.client(
            service,
            endpoint_url=self.https if secure else self.http,
            verify=self.ca if secure else None,
            region_name="us-east-1",
            config=Config(
                s3={"addressing_style": "path"},
                retries={"total_max_attempts": 1},
                request_checksum_calculation="when_required",  # the server takes no trailing checksums
            ),
            **(credentials or self._users["admin"]),
        )

    def user(self, name: str) -> dict[str, str]:
        """A user's own credentials."""
        return self._users[name]

    def bucket(self) -> str:
        """A new bucket of the owner's."""
        name = f"v-{uuid.uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=name)
        return name

    def role(self, policy: dict[str, Any]) -> dict[str, str]:
        """Short-lived credentials of a new role with this policy."""
        for statement in policy["Statement"]:
            if isinstance(statement["Action"], list):
                statement["Action"] = [name for name in statement["Action"] if name not in _UNKNOWN]
        name = f"r{uuid.uuid4().hex[:10]}"
        self._admin("role", "create", f"--role-name={name}", f"--assume-role-policy-doc={json.dumps(_TRUST)}")
        self._admin(
            "role-policy", "put", f"--role-name={name}", "--policy-name=p", f"--policy-doc={json.dumps(policy)}"
        )
        given = self.client(service="sts").assume_role(RoleArn=f"arn:aws:iam:::role/{name}", RoleSessionName="test")
        found = given["Credentials"]
        return {
            "aws_access_key_id": found["AccessKeyId"],
            "aws_secret_access_key": found["SecretAccessKey"],
            "aws_session_token": found["SessionToken"],
        }

    def store(self, bucket: str, credentials: dict[str, str], prefix: str = "", **settings: Any) -> S3Store:
        """A vault's store that acts with these credentials."""
        values = {
            "endpoint_url": self.https, "ca_bundle": self.ca, "region": "us-east-1", "addressing_style": "path",
            "max_attempts": 1,
        }  # fmt: skip
        return ActingStore(bucket, prefix, Settings.model_validate(values | settings), credentials)

    def requests(self, bucket: str, operation: str, key: str) -> list[dict[str, Any]]:
        """What the server's own operations log says was asked for, since the log was read last."""
        client = self.client()
        with socket.socket(socket.AF_UNIX) as log:
            log.connect(self.opslog)
            log.settimeout(20)
            client.head_bucket(Bucket=bucket)  # marks the end
            data = b""
            while not _ends(found := _objects(data), bucket):
                more = log.recv(65_536)
                assert more, "the server closed its operations log"
                data += more
        return [item for item in found if item["operation"] == operation and key in item["uri"]]

    def expire(self) -> None:
        """Run the lifecycle now; by itself it may take a bucket up a whole round later."""
        self._admin("lc", "process")

    def _admin(self, *command: str) -> None:
        subprocess.run(["radosgw-admin", "-c", self._conf, *command], check=True, capture_output=True)


def _objects(data: bytes) -> list[dict[str, Any]]:
    """The whole JSON objects in a stream of them."""
    text, out, decoder = data.decode(errors="replace").lstrip("[, \n"), [], json.JSONDecoder()
    while text:
        try:
            found, end = decoder.raw_decode(text)
        except ValueError:
            break
        out.append(found)
        text = text[end:].lstrip(", \n")
    return out


def _ends(found: list[dict[str, Any]], bucket: str) -> bool:
    return bool(found) and found[-1].get("bucket") == bucket and found[-1].get("operation") == "stat_bucket"
