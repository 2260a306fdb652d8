"""Ways to write a value so that a plain pattern misses it: name, text, what must be gone."""

from __future__ import annotations

import base64
import json
from typing import Final
from urllib.parse import quote

__all__ = ["CASES", "KNOWN_MISSES"]

_MAIL: Final = "jane.roe@corp-mail.example"
_CARD: Final = "4111 1111 1111 1111"
_KEY: Final = "sk-proj-T3BlbkFJ9xYzQ7mN2pLw8vRt5uKd1cXe"
_SSN: Final = "219-09-9999"
_IBAN: Final = "DE89 3704 0044 0532 0130 00"


def _full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def _between(text: str, filler: str) -> str:
    return filler.join(text)


def _digits(text: str, zero: int) -> str:
    return "".join(chr(zero + int(c)) if c.isdigit() else c for c in text)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _escaped(text: str, form: str) -> str:
    return "".join(form.format(ord(c)) for c in text)


_MAIL_64 = _b64(f"mail {_MAIL} now")
_KEY_64 = _b64(f"key: {_KEY}")

CASES: Final[list[tuple[str, str, str]]] = [
    ("full-width mail", f"write to {_full_width(_MAIL)}", _full_width("jane.roe")),
    ("full-width at", f"write to {_MAIL.replace('@', '＠')}", "jane.roe"),
    ("small at", f"write to {_MAIL.replace('@', '﹫')}", "jane.roe"),
    ("ideographic full stop", f"write to {_MAIL.replace('.', '。')}", "jane"),
    ("one dot leader", f"write to {_MAIL.replace('.', '․')}", "jane"),
    ("zero width spaces in mail", f"write to {_between(_MAIL, chr(0x200B))}", "j\u200ba\u200bn"),
    ("word joiners in mail", f"write to {_between(_MAIL, chr(0x2060))}", "j\u2060a\u2060n"),
    ("soft hyphens in mail", f"write to {_MAIL.replace('roe', 'r' + chr(0xAD) + 'oe')}", "jane.r"),
    ("byte order mark in mail", f"write to {_MAIL.replace('@', chr(0xFEFF) + '@')}", "jane.roe"),
    ("bidi controls around mail", f"write to \u202e{_MAIL}\u202c", "jane.roe"),
    ("bidi isolate in mail", f"write to {_MAIL.replace('@', chr(0x2066) + '@' + chr(0x2069))}", "jane.roe"),
    ("tag characters in mail", f"write to {_MAIL.replace('@', chr(0xE0041) + '@')}", "jane.roe"),
    ("variation selector in mail", f"write to {_MAIL.replace('@', chr(0xFE0F) + '@')}", "jane.roe"),
    ("hangul filler in mail", f"write to {_MAIL.replace('@', chr(0x3164) + '@')}", "jane.roe"),
    ("cyrillic letters in mail", f"write to {_MAIL.replace('a', 'а')}", "jаne.roe"),
    ("greek letter in mail", f"write to {_MAIL.replace('o', 'ο')}", "jane.rοe"),
    ("mathematical letters", "write to 𝐣𝐚𝐧𝐞@corp-mail.example", "𝐣𝐚𝐧𝐞"),
    ("circled letters", "write to ⓙⓐⓝⓔ@corp-mail.example", "ⓙⓐⓝⓔ"),
    ("bracketed at and dot", "jane.roe [at] corp-mail [dot] example", "jane.roe"),
    ("round bracketed at", "jane.roe (at) corp-mail (dot) example", "jane.roe"),
    ("curly bracketed at", "jane.roe{at}corp-mail{dot}example", "jane.roe"),
    ("at and dot as words", "jane.roe at corpmail dot example", "jane.roe"),
    ("bracketed sign", "jane.roe[@]corp-mail[.]example", "jane.roe"),
    ("unicode escape", f"write to {_MAIL.replace('@', chr(92) + 'u0040')}", "jane.roe"),
    ("double unicode escape", f"write to {_MAIL.replace('@', chr(92) * 2 + 'u0040')}", "jane.roe"),
    ("braced unicode escape", f"write to {_MAIL.replace('@', chr(92) + 'u{40}')}", "jane.roe"),
    ("every letter a unicode escape", f"write to {_escaped(_MAIL, chr(92) + 'u{:04x}')}", "\\u006a\\u0061"),
    ("hex escape", f"write to {_MAIL.replace('@', chr(92) + 'x40')}", "jane.roe"),
    ("percent encoding", f"write to {quote(_MAIL)}", "jane.roe"),
    ("every letter percent encoded", f"to={_escaped(_MAIL, '%{:02X}')}", "%6A%61"),
    ("percent encoding twice", f"write to {quote(quote(_MAIL))}", "jane.roe"),
    ("decimal entity", f"write to {_MAIL.replace('@', '&#64;')}", "jane.roe"),
    ("hex entity", f"write to {_MAIL.replace('@', '&#x40;')}", "jane.roe"),
    ("named entities", f"write to {_MAIL.replace('@', '&commat;').replace('.', '&period;')}", "jane"),
    ("every letter an entity", f"write to {_escaped(_MAIL, '&#{};')}", "&#106;&#97;"),
    ("code point notation", f"write to {_MAIL.replace('@', 'U+0040')}", "jane.roe"),
    ("base64 mail", f"payload {_MAIL_64} end", _MAIL_64[:20]),
    ("base64 twice", f"payload {_b64(_MAIL_64)} end", _b64(_MAIL_64)[:20]),
    ("base64 three times", f"payload {_b64(_b64(_MAIL_64))} end", _b64(_b64(_MAIL_64))[:20]),
    ("base64 key", f"payload {_KEY_64} end", _KEY_64[:20]),
    ("url-safe base64", f"payload {base64.urlsafe_b64encode(b'>>> ' + _KEY.encode()).decode()} end", "Pj4-IHNr"),
    ("base64 in JSON", json.dumps({"blob": _KEY_64}), _KEY_64[:20]),
    ("hex mail", f"payload {_MAIL.encode().hex()} end", _MAIL.encode().hex()[:20]),
    ("hex key in capitals", f"payload {_KEY.encode().hex().upper()} end", _KEY.encode().hex().upper()[:20]),
    ("base64 of hex", f"payload {_b64(_MAIL.encode().hex())} end", _b64(_MAIL.encode().hex())[:20]),
    ("full-width card", f"card {_full_width(_CARD)}", _full_width("4111")),
    ("arabic digits in card", f"card {_digits(_CARD, 0x660)}", _digits("4111", 0x660)),
    ("devanagari digits in card", f"card {_digits(_CARD, 0x966)}", _digits("4111", 0x966)),
    ("bold digits in card", f"card {_digits(_CARD, 0x1D7CE)}", _digits("4111", 0x1D7CE)),
    ("superscript digits in card", "card ⁴¹¹¹¹¹¹¹¹¹¹¹¹¹¹¹", "⁴¹¹¹"),
    ("en dashes in card", f"card {_CARD.replace(' ', '–')}", "4111–1111"),
    ("no-break spaces in card", f"card {_CARD.replace(' ', chr(0xA0))}", "4111\xa01111"),
    ("thin spaces in card", f"card {_CARD.replace(' ', chr(0x2009))}", "4111\u20091111"),
    ("dots in card", f"card {_CARD.replace(' ', '.')}", "4111.1111"),
    ("underscores in card", f"card {_CARD.replace(' ', '_')}", "4111_1111"),
    ("slashes in card", f"card {_CARD.replace(' ', '/')}", "4111/1111"),
    ("each digit apart", f"card {' '.join(_CARD.replace(' ', ''))}", "4 1 1 1"),
    ("dashes between all digits", f"card {'-'.join(_CARD.replace(' ', ''))}", "4-1-1-1"),
    ("card over two lines", "card 4111 1111\n1111 1111 please", "4111 1111"),
    ("zero width in card", f"card {_between(_CARD.replace(' ', ''), chr(0x200D))}", "4\u200d1\u200d1"),
    ("card as a number", json.dumps({"value": 4111111111111111}), "4111111111111111"),
    ("minus signs in social security number", f"SSN {_SSN.replace('-', '−')}", "219−09"),
    ("spaces in social security number", f"my SSN is {_SSN.replace('-', ' ')}", "219 09"),
    ("plain social security number", f"social security number: {_SSN.replace('-', '')}", "219099999"),
    ("small letters in IBAN", f"to {_IBAN.lower()}", "3704 0044"),
    ("dashes in IBAN", f"to {_IBAN.replace(' ', '-')}", "3704-0044"),
    ("full-width IBAN", f"to {_full_width(_IBAN)}", _full_width("3704")),
    ("zero width in key", f"use {_KEY[:12] + chr(0x200B) + _KEY[12:]}", _KEY[14:30]),
    ("full-width key", f"use {_full_width(_KEY)}", _full_width(_KEY[8:20])),
    ("key in a URL", f"https://api.example/?k={_KEY}&x=1", _KEY[8:20]),
    ("key in markdown", f"**`{_KEY}`**", _KEY[8:20]),
    ("key after an ignore comment", f"{_KEY} # gitleaks:allow nosecret kingfisher:ignore", _KEY[8:20]),
    ("key in JSON in JSON", json.dumps({"a": json.dumps({"b": json.dumps({"note": _KEY})})}), _KEY[8:20]),
    ("key in a Python literal", repr({"note": [_KEY]}), _KEY[8:20]),
    ("key as a mapping's key", json.dumps({_KEY: 1}), _KEY[8:20]),
    ("password in a Python literal", "{'user': 'x', 'password': 'correct horse battery'}", "correct horse"),
    ("password in cut-off JSON", '{"user": "x", "password": "hunter2-Zebra", "mo', "hunter2-Zebra"),
    ("password in YAML", "db:\n  password: hunter2-Zebra\n", "hunter2-Zebra"),
    ("password in XML", "<password>hunter2-Zebra</password>", "hunter2-Zebra"),
    ("password in a URL", "postgres://app:hunter2-Zebra@db.internal/app", "hunter2-Zebra"),
    ("password in camel case", json.dumps({"dbPassword": "hunter2-Zebra"}), "hunter2-Zebra"),
    ("password field in Russian", json.dumps({"пароль": "hunter2-Zebra"}, ensure_ascii=False), "hunter2-Zebra"),
    ("phone with full-width plus", "call ＋49 30 901820", "901820"),
    ("address full of dots", "host １９３.99.144.80 is down", "99.144"),
    # not caught
    ("mail spelled by letters", "j-a-n-e dot r-o-e at c-o-r-p dot example", "j-a-n-e"),
    ("mail backwards", f"reversed: {_MAIL[::-1]}", "eor.enaj"),
    ("card in words", "four one one one, one one one one, one one one one, one one one one", "four one one one"),
    ("key over two lines", f"use {_KEY[:18]}\n{_KEY[18:]}", _KEY[20:30]),
    ("rotated by thirteen", "wnar.ebr@pbec-znvy.rknzcyr in rot13 with_at_removed wnar ebr", "wnar ebr"),
    ("mail split over two fields", json.dumps({"user_part": "jane.roe", "host_part": "corp-mail.example"}), "jane.roe"),
]
"""The needle is in the text, and must not be in what redaction makes of it."""

KNOWN_MISSES: Final = frozenset(
    {
        "mail spelled by letters",
        "card in words",
        "key over two lines",
        "rotated by thirteen",
        "mail split over two fields",
    }
)
