"""Each detector finds what it is for, and leaves alone what only looks like it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from redaction.shapes import like
from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor
from sealtrace.redaction.detectors import built_in

_KEYS = Keys(b"a key for the tests only")
_STRICT = Redactor(Policy(), _KEYS)
_BALANCED = Redactor(Policy(profile="balanced"), _KEYS)
_ISSUED = [detector for detector in built_in("strict") if detector.prefixes]


@pytest.mark.parametrize("detector", _ISSUED, ids=[detector.name for detector in _ISSUED])
def test_every_issuers_token_is_found_wherever_it_stands(detector: Any) -> None:
    """Alone, quoted, in a URL, in JSON, in a sentence: nothing of it is left, in either profile's eyes a secret."""
    draw = random.Random(detector.name)
    for _ in range(5):
        token = like(detector.pattern, draw)
        for text in (
            token,
            f'k = "{token}"',
            f"https://h.example/?key={token}&x=1",
            f"use key {token}, please",
            f"<b>{token}</b>",
        ):
            for redactor in (_STRICT, _BALANCED):
                if redactor is _BALANCED and "key" not in text and detector.name in _PUBLIC:
                    continue
                safe = redactor.redact({"output": json.dumps({"note": text})}).value["output"]
                assert token[8:] not in safe, text


_PUBLIC = {"google_api", "mapbox", "stripe_publishable"}


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("mail Jane.Roe+tag@sub.corp-mail.example.", "Jane.Roe"),
        ("<jane@corp-mail.example>, 'bob@corp-mail.example'", "bob@"),
        ("?to=jane@corp-mail.example&x", "jane@"),
        ("4111-1111-1111-1111", "4111"),
        ("card 5555 5555 5555 4444 exp 12/29", "5555"),
        ("amex 3782 822463 10005", "822463"),
        ("my card 503802053770", "503802053770"),
        ("NL91 ABNA 0417 1643 00", "0417"),
        ("GB29NWBK60161331926819", "60161331926819"),
        ("FR1420041010050500013M02606", "13M02606"),
        ("SSN: 219-09-9999", "219"),
        ("ssn 219099999", "219099999"),
        ("host 193.99.144.80:443", "193.99"),
        ("from 2001:4860:4860::8888 at", "4860"),
        ("+46 (0)8 928 571 38", "928"),
        ("(415) 333-4444 x12", "x12"),
        ("Phone: 451 5986", "451 5986"),
        ("Tel. 0490 75 40 81", "0490"),
        ("born on 2/8/1935", "1935"),
        ("DOB: 12 March 1984", "March"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefgh", "eyJhbGci"),
        ("Authorization: Bearer q8Zt3LmN7pXv2RkW", "q8Zt3"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpw"),
        ("curl -u admin:S3cr3t-pw https://h", "S3cr3t"),
        ("redis://:p4ss-word@cache:6379/0", "p4ss-word"),
        ("export DB_PASSWORD=hunter2-Zebra", "hunter2"),
        ('{"clientSecret": "correct-horse-7"', "correct-horse"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzKq8Zt3Lm", "wJalr"),
        ("token: 3jky4mifwaygu8juy11o5s4yykqt5q", "3jky4"),
        ("hooks.slack.com/services/T024TTTTT/BBB72BBL/AZAAA9u0pA4ad666eMgbi555", "AZAAA9u0"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\n"
            + "MIIEpQIBAAKCAQEAn6/O8li+SX4m98LL\n" * 3
            + "-----END RSA PRIVATE KEY-----",
            "MIIE",
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\\n" + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUA\\n" * 3, "b3Blb"),
    ],
)
def test_a_value_is_found(text: str, gone: str) -> None:
    """What the detector is for does not get through the strict profile."""
    assert gone in text
    safe = _STRICT.redact(text)
    assert gone not in safe.value
    assert safe.counts


@pytest.mark.parametrize(
    "text",
    [
        "order #W2611340 shipped 2024-05-15T14:30:00.123456Z for $1,234.56 to gate B12",
        "550e8400-e29b-41d4-a716-446655440000",
        "9fbc6b15287ebb940ee7df75eb73e8f8d41d8cd98f00b204e9800998ecf8427e",
        "call_Zq3N8s5T1vXyB2cD4eF6gH7i msg_68a1f0c2e4d88191a0b3c4d5e6f70812 resp_68a1f0c2e4d8",
        "git commit 2e3ac28 fixes sk-learn-contrib-project-template and key-value-store-backend-name",
        "password = get_password()\ntoken = os.environ['TOKEN']\nkey = config.api_key",
        "api_key: ${API_KEY} secret: <your secret> token=xxxxxxxxxxxxxxxx",
        "max_tokens=4096, next_page_token: none, the secret of success, key findings: 12",
        "def test_author(self, key, token): return self.assertEqual(key.name, token.value)",
        "see version 10.2.14.3 of std::chrono::duration and a[::2] at 12:30:45",
        "127.0.0.1:8080 and ::1 and 0.0.0.0 and 192.0.2.17",
        "4111 1111 1111 1112 is no card; neither is 1234567890123456",
        "SELECT * FROM t WHERE created > '2024-01-01' AND id IN (1234567, 7654321)",
        "look at example.com or at the docs",
        "npm install @scope/package@1.2.3 && git@v2",
        "ISBN 978-3-16-148410-0, EAN 4006381333931, epoch 1700000000",
        "csrf_token=aB3dE5fG7hJ9kL1mN3pQ5rS7 primary_key: users_2024_pk",
        "AKIAXXXXXXXXXXXXXXXX and glpat-XXXXXXXXXXX-XXXXXXXX and ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ],
)
def test_a_look_alike_is_left_alone(text: str) -> None:
    """The balanced profile changes nothing in text that holds nothing."""
    assert _BALANCED.redact(text).value == text
