"""A running radosgw and what tests ask of it: buckets, roles, short-lived credentials."""

from __future__ import annotations

import functools
import json
import socket
import subprocess
import threading
import time
import uuid
from typing import Any

import boto3
from botocore.config import Config

from sealtrace.settings import Settings
from sealtrace.vault.stores import S3Store
from sealtrace.vault.stores.clients import new_client

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

    @functools.cached_property
    def _own(self) -> Any:
        return new_client(self._settings, boto3.session.Session(**self._credentials))

    def _client(self) -> Any:
        return self._own


class Gateway:
    """The server, as its start script described it."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.http: str = about["http"]
        self.https: str = about["https"]
        self.ca: str = about["ca"]
        self.kms_key: str = about["kms_key"]
        self._conf: str = about["conf"]
        self._users: dict[str, dict[str, str]] = about["users"]
        self._log: list[dict[str, Any]] = []
        log = socket.socket(socket.AF_UNIX)
        log.connect(about["opslog"])
        threading.Thread(target=self._read_log, args=(log,), daemon=True).start()

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
        return self.taken(name)

    def taken(self, name: str) -> dict[str, str]:
        """Short-lived credentials of a role that is there."""
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

    def requests(self, bucket: str, operation: str) -> list[dict[str, Any]]:
        """What the server's own operations log says was asked of the bucket since this was called last."""
        marks = self._marks(bucket)
        self.client().head_bucket(Bucket=bucket)  # comes last, so when it is in the log everything before is
        deadline = time.monotonic() + 30
        while self._marks(bucket) == marks:
            assert time.monotonic() < deadline, "the server's operations log says nothing"
            time.sleep(0.02)
        found, self._log = self._log, []
        return [item for item in found if item["bucket"] == bucket and item["operation"] == operation]

    def _marks(self, bucket: str) -> int:
        return sum(item["bucket"] == bucket and item["operation"] == "stat_bucket" for item in self._log)

    def _read_log(self, log: socket.socket) -> None:
        text, decoder = "", json.JSONDecoder()
        with log:
            while data := log.recv(65_536):
                text = (text + data.decode(errors="replace")).lstrip("[, \n")
                while text:
                    try:
                        found, end = decoder.raw_decode(text)
                    except ValueError:
                        break
                    self._log.append(found)
                    text = text[end:].lstrip(", \n")

    def expire(self) -> None:
        """Run the lifecycle now; by itself it may take a bucket up a whole round later."""
        self._admin("lc", "process")

    def _admin(self, *command: str) -> None:
        subprocess.run(["radosgw-admin", "-c", self._conf, *command], check=True, capture_output=True)
