"""An S3 server in this process that knows who may do what, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import moto.settings
from moto.core.responses import ActionAuthenticatorMixin
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

NAME = "vault-bucket"


class Bucket:
    """A bucket.

    Attributes:
        url: The server's endpoint.
        vault: The vault in it.
        asked: Method, path and range of each request, in order.
    """

    def __init__(self) -> None:
        self.vault = f"s3://{NAME}/team/a"
        self.asked: list[tuple[str, str, str | None]] = []
        self._app: Any = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def _answer(self, environ: dict[str, Any], start: Any) -> Any:
        self.asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE")))
        return self._app(environ, start)

    @contextlib.contextmanager
    def running(self) -> Iterator[Bucket]:
        """Until the block ends; the bucket is there and empty."""
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._thread.start()
        try:
            urllib.request.urlopen(f"{self.url}/moto-api/reset", b"", timeout=30).close()
            self._client("s3").create_bucket(Bucket=NAME)
            yield self
        finally:
            moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def fill(self, folder: Path) -> None:
        """Copy a vault in a directory into the bucket."""
        client = self._client("s3")
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"team/a/{path.relative_to(folder).as_posix()}"
                client.put_object(Bucket=NAME, Key=key, Body=path.read_bytes())

    def reader(self, *classes: str) -> dict[str, str]:
        """Environment of a new user who may list everything and read these classes of objects; others are refused.

        From here on the server asks everybody for credentials.
        """
        iam = self._client("iam")
        name = "-".join(("reader", *classes))
        iam.create_user(UserName=name)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        objects = [f"arn:aws:s3:::{NAME}/team/a/{klass}/*" for klass in classes]
        statements = [
            {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [f"arn:aws:s3:::{NAME}"]},
            {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": objects},
        ]
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
        iam.put_user_policy(UserName=name, PolicyName="read", PolicyDocument=policy)
        moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
        ActionAuthenticatorMixin.request_count = 0
        return self.environment(key["AccessKeyId"], key["SecretAccessKey"])

    def environment(self, access: str = "", secret: str = "") -> dict[str, str]:
        """Environment of a process that uses these credentials, or none, on this server."""
        keys = {"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret} if access else {}
        return {
            **keys,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SEALTRACE_ENDPOINT_URL": self.url,
            "SEALTRACE_REGION": "us-east-1",
            "SEALTRACE_MAX_ATTEMPTS": "1",
        }

    def _client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="owner",
            aws_secret_access_key="owner",
        )
