"""A KMS on loopback: moto's, behind a front that refuses what moto does not and AWS would.

Moto keeps keys and encryption contexts apart. It neither minds that a key is disabled nor that another key
than the one named encrypted something, and hashes a digest that it is to sign once more. The front does
as AWS does, refuses whatever it is told to, and counts.
"""

from __future__ import annotations

import base64
import json
import threading
import urllib.error
import urllib.request
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from moto.server import ThreadedMotoServer

__all__ = ["KmsServer"]

_REGION = "eu-central-1"
_ID = 36
"""Length of a key's id, with which moto's ciphertexts begin."""


class KmsServer:
    """Keys for a test, and what becomes of calls.

    Attributes:
        url: Where it listens.
        calls: How often each operation was asked for, by its name.
        refusal: Every call is answered with this error code while it is set.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.refusal: str | None = None
        self._disabled: set[str] = set()
        self._signing: dict[str, ec.EllipticCurvePrivateKey] = {}
        self._moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._moto.start()
        host, port = self._moto.get_host_and_port()
        self._behind = f"http://{host}:{port}"
        self._front = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._front.server_port}"
        self._thread = threading.Thread(target=self._front.serve_forever)
        self._thread.start()

    def close(self) -> None:
        """Stop it."""
        self._front.shutdown()
        self._thread.join()
        self._front.server_close()
        self._moto.stop()

    def forget(self) -> None:
        """Nothing counted, nothing refused."""
        self.calls.clear()
        self.refusal = None
        self._disabled.clear()

    def use(self, monkeypatch: pytest.MonkeyPatch, url: str | None = None) -> None:
        """Have boto3's default chain lead here, or to another address."""
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", _REGION)
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", url or self.url)

    def symmetric(self) -> str:
        """The ARN of a new key that encrypts."""
        return str(self._administrator().create_key()["KeyMetadata"]["Arn"])

    def signing(self, curve: ec.EllipticCurve | None = None) -> str:
        """The ARN of a new key that signs, `ECC_NIST_P256` by default."""
        arn = str(self._administrator().create_key()["KeyMetadata"]["Arn"])
        self._signing[_id(arn)] = ec.generate_private_key(curve or ec.SECP256R1())
        return arn

    def public_pem(self, arn: str) -> bytes:
        """What `aws kms get-public-key` and `openssl pkey` make of a signing key."""
        return self._signing[_id(arn)].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def encrypted(self, arn: str, data: bytes, context: dict[str, str]) -> str:
        """The ciphertext of something in base 64, as `aws kms encrypt` prints it."""
        blob = self._administrator().encrypt(KeyId=arn, Plaintext=data, EncryptionContext=context)["CiphertextBlob"]
        return base64.b64encode(blob).decode()

    def disable(self, arn: str) -> None:
        """Have a key refuse everything."""
        self._disabled.add(_id(arn))

    def enable(self, arn: str) -> None:
        """Have it work again."""
        self._disabled.discard(_id(arn))

    def _administrator(self) -> Any:
        return boto3.client("kms", region_name=_REGION, endpoint_url=self._behind)

    def _refused(self, operation: str, request: dict[str, Any]) -> str | None:
        self.calls[operation] += 1
        if self.refusal is not None:
            return self.refusal
        named = _id(request.get("KeyId", ""))
        used = named
        if operation == "Decrypt":
            used = base64.b64decode(request["CiphertextBlob"])[:_ID].decode("ascii", "replace")
        if self._disabled & {used, named}:
            return "DisabledException"
        return "IncorrectKeyException" if named and used != named else None

    def _signed(self, operation: str, request: dict[str, Any]) -> dict[str, str] | None:
        """The answer for a key that signs; None if that is not what is asked for."""
        key = self._signing.get(_id(request.get("KeyId", "")))
        if key is None:
            return None
        if operation == "GetPublicKey":
            data = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            return {"PublicKey": base64.b64encode(data).decode()}
        assert (operation, request["MessageType"], request["SigningAlgorithm"]) == ("Sign", "DIGEST", "ECDSA_SHA_256")
        signature = key.sign(base64.b64decode(request["Message"]), ec.ECDSA(Prehashed(SHA256())))
        return {"Signature": base64.b64encode(signature).decode()}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                operation = self.headers["X-Amz-Target"].rpartition(".")[2]
                request = json.loads(body)
                refusal = server._refused(operation, request)
                if refusal is not None:
                    self._answer(400, json.dumps({"__type": refusal, "message": refusal}).encode())
                    return
                signed = server._signed(operation, request)
                if signed is not None:
                    self._answer(200, json.dumps(signed).encode())
                    return
                headers = {name: self.headers[name] for name in ("Authorization", "Content-Type", "X-Amz-Target")}
                forwarded = urllib.request.Request(server._behind, body, headers)
                try:
                    with urllib.request.urlopen(forwarded) as found:
                        self._answer(200, found.read())
                except urllib.error.HTTPError as error:
                    with error:
                        self._answer(error.code, error.read())

            def _answer(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def _id(arn: str) -> str:
    return arn.rpartition("/")[2]
