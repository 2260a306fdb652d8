"""Values that look like what detectors look for, ways to spell them, and payloads an agent might record.

Everything is drawn from one seeded source, and nothing depends on the order of a set or on the process's
hash seed: the same seed gives the same payloads everywhere, a hundred thousand of them in a few seconds.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from typing import Any, Final
from urllib.parse import quote

from sealtrace.redaction.detectors import built_in
from sealtrace.redaction.fields import _WORDS as SENSITIVE
from sealtrace.redaction.uses import STRUCTURAL
from sealtrace.redaction.validators import _IBAN_LENGTH as IBAN_LENGTH
from sealtrace.redaction.validators import iban, luhn

__all__ = ["Payloads", "like"]

_MANY: Final = 24
_LETTERS: Final = string.ascii_letters
_ALNUM: Final = string.ascii_letters + string.digits
_PROSE: Final = [
    "the order was sent", "on Monday", "and", "call me back at", "my card is", "please", "see page", "for", "version",
    "of", "total", "items", "was born", "number", "fax", "mobile", "Telefon", "tel", "ssn", "social security", "token",
    "password", "key", "secret is", "Bearer", "Basic", "user name", "refund",
]  # fmt: skip
_ODD: Final = [
    "\x00", "\x1b[31m", "\ud800", "\udfff", "\u200b", "\u202e", "\ufeff", "é", "ß", "İ", "ı", "ﬁ", "’", "—", "日本",
    "\t", "кириллица", "𝐣", "٤", "４", "＠", "．", "\u2028", "\x85", "\u0301", "👩\u200d💻", "\U000e0041", "%", "%4",
    "%00", "\\", "\\u", "\\ud83d", "\\u0040", "&#64;", "&amp;#64;", "&#0;", "U+0040", "<", ">", "<EMAIL:",
    ":abcdefghijkl>", "#", "|", "{", "}", "[", "]", '"', "'", "`", ",", ":", "=", "\n", "\r\n", "/", "@", ".", "-", "_",
    "+",
]  # fmt: skip
_TIES: Final = ["=", ": ", ":", " = ", '": "', "': '", " is ", " ", "=>", " -> ", "|", '="', "/"]
_NAMES: Final = [
    "db_password", "clientSecret", "API_TOKEN", "aws_secret_access_key", "token", "key", "Authorization", "--password",
    "max_tokens", "primary_key", "passwd", "session_id", "cookie", "X-Api-Key",
]  # fmt: skip
_PLAIN_NAMES: Final = [
    "note", "text", "content", "output", "arguments", "items", "amount", "count", "result", "data", "query", "a.b", "",
    " ", "x", "created_at", "total", "url", "meta", "tokens", "list", "message",
]  # fmt: skip


def like(pattern: str, draw: random.Random) -> str:
    """A random string that the pattern matches; repeats of open length are kept short."""
    parser: Any = re._parser

    def made(items: Any) -> str:
        out = ""
        for operation, value in items:
            name = str(operation)
            if name == "LITERAL":
                out += chr(value)
            elif name == "NOT_LITERAL":
                out += draw.choice([c for c in _ALNUM if c != chr(value)])
            elif name == "ANY":
                out += draw.choice(_ALNUM)
            elif name == "IN":
                out += draw.choice(_members(value))
            elif name in {"MAX_REPEAT", "MIN_REPEAT"}:
                low, high, inner = value
                for _ in range(min(max(low, _MANY if high > _MANY else 1), int(high))):
                    out += made(inner)
            elif name == "SUBPATTERN":
                out += made(value[3])
            elif name == "BRANCH":
                out += made(draw.choice(value[1]))
            elif name != "AT":
                raise AssertionError(name)
        return out

    return made(parser.parse(pattern))


def _members(parsed: Any) -> list[str]:
    body = ""
    for operation, value in parsed:
        name = str(operation)
        if name == "RANGE":
            body += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        elif name == "LITERAL":
            body += re.escape(chr(value))
        elif name == "CATEGORY":
            body += {"CATEGORY_SPACE": r"\s", "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_DIGIT": r"\d"}.get(
                str(value), r"\w"
            )
        elif name == "NEGATE":
            body += "^"
    members = [c for c in map(chr, range(32, 127)) if re.fullmatch(f"[{body}]", c)]
    return [c for c in members if c.isalnum()] or members


def _run(draw: random.Random, alphabet: str, size: int) -> str:
    return "".join(draw.choices(alphabet, k=size))


def _card(draw: random.Random) -> str:
    first = draw.choice(["4", "51", "2221", "6011", "35", "34", "37", "36", "50", "5018", "999999"])
    size = draw.choice([12, 13, 15, 16, 16, 16, 19])
    body = first + _run(draw, string.digits, size - 1 - len(first))
    number = next(body + digit for digit in string.digits if luhn(body + digit))
    if draw.random() < 0.15:
        number = number[:-1] + str((int(number[-1]) + 1) % 10)
    style = draw.random()
    if style < 0.4:
        return number
    between = draw.choice([" ", "-", ".", "_", "/", "  ", "\n", "–", "\u00a0"])
    if style < 0.5:
        return between.join(number)
    return between.join(number[index : index + 4] for index in range(0, len(number), 4))


def _iban(draw: random.Random) -> str:
    country = draw.choice(["DE", "GB", "NL", "FR", "CH", "NO", "MT"])
    body = _run(draw, string.digits if country == "DE" else "0123456789ABCXYZ", IBAN_LENGTH[country] - 4)
    compact = next((whole for check in range(2, 99) if iban(whole := f"{country}{check:02d}{body}")), body)
    if draw.random() < 0.5:
        compact = " ".join(compact[index : index + 4] for index in range(0, len(compact), 4))
    return compact.lower() if draw.random() < 0.1 else compact


_PHONES: Final = [
    "+## ### ### ## ##", "+1-###-###-####", "(###) ###-####", "###-###-####", "###.###.####", "0### ######", "### ####",
    "+##(0)#########", "0# ## ## ## ##", "00## ## #######", "### ### #### x##", "+1-415-555-01##", "1 (###) ### ####",
]  # fmt: skip


def _phone(draw: random.Random) -> str:
    return "".join(draw.choice("23456789") if c == "#" else c for c in draw.choice(_PHONES))


_DOMAINS: Final = [
    "corp-mail.example",
    "x.io",
    "sub.domain.co.uk",
    "redacted.invalid",
    "münchen.de",
    "localhost",
    "a.png",
]


def _mail(draw: random.Random) -> str:
    local = _run(draw, _ALNUM + "._+-'", draw.randint(1, 14))
    at = draw.choice(["@", "@", "@", "@", " at ", "[at]", " (at) ", "＠", "%40", "@@"])
    domain = draw.choice(_DOMAINS)
    return local + at + (domain.replace(".", " [dot] ") if "[" in at else domain)


def _address(draw: random.Random) -> str:
    if draw.random() < 0.3:
        groups = ["", "0", "2001", "db8", "fe80", "4860", "8888", "ffff"]
        return ":".join(draw.choice(groups) for _ in range(draw.randint(2, 8)))
    bytes_ = [0, 1, 10, 127, 192, 198, 203, 255, draw.randint(0, 300)]
    parts = [str(draw.choice(bytes_)) for _ in range(draw.choice([3, 4, 4, 4, 5]))]
    return ".".join(parts) + draw.choice(["", ":443", "/24", ".", "-1"])


def _jwt(draw: random.Random) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256'})}.{part({'sub': _mail(draw), 'n': draw.randint(0, 9999)})}.{_run(draw, _ALNUM, 22)}"


def _assigned(draw: random.Random) -> str:
    generated = _run(draw, _ALNUM, draw.randint(3, 40))
    value = draw.choice([generated, generated, "hunter2-Zebra", "${TOKEN}", "xxxxxxxx", "correct horse"])
    return draw.choice(_NAMES) + draw.choice(_TIES) + value + draw.choice(["", "", '"', "'", ";", "\n"])


def _key_file(draw: random.Random) -> str:
    newline = draw.choice(["\n", "\\n", "\r\n"])
    lines = [_run(draw, _ALNUM + "+/", 64) for _ in range(draw.randint(1, 4))]
    kind = draw.choice(["RSA ", "OPENSSH ", "", "EC "])
    whole = newline.join([f"-----BEGIN {kind}PRIVATE KEY-----", *lines, f"-----END {kind}PRIVATE KEY-----"])
    return whole[: draw.randint(40, len(whole))] if draw.random() < 0.3 else whole


def _innocent(draw: random.Random) -> str:
    number = draw.randint
    day = f"2026-{number(1, 12):02d}-{number(1, 28):02d}"
    return draw.choice(
        [
            f"{number(0, 2**128 - 1):032x}",
            f"{number(0, 2**32 - 1):08x}-{number(0, 65535):04x}-4{number(0, 4095):03x}",
            f"{day}T{number(0, 23):02d}:{number(0, 59):02d}:{number(0, 59):02d}.{number(0, 999999):06d}Z",
            f"${number(1, 9999)}.99",
            f"W{number(10**6, 10**7)}",
            f"call_{_run(draw, _ALNUM, 24)}",
            f"sku-{number(10**9, 10**10)}",
            f"1.{number(0, 20)}.{number(0, 99)}",
            str(number(10**12, 10**13)),
            "std::chrono::seconds",
            "https://h.example/a/b?c=d&e=f#g",
            "a = b[::2]",
        ]
    )


def _made(draw: random.Random) -> str:
    """What redaction itself writes, whole and cut off."""
    tag = _run(draw, string.ascii_lowercase, 12)
    kind = draw.choice(["EMAIL", "CARD", "SECRET", "PHONE", "MEDIA", "X"])
    return draw.choice(
        [
            f"<{kind}:{tag}>", f"<{kind}:{tag}", f"{tag}@redacted.invalid", "000-12-3456", "+1-415-555-0123",
            "192.0.2.7", "1900-01-03", "<DROPPED>", "9999990123456782", "2001:db8:0001:0002:0003:0004:0005:0006",
            "9090123456789",
        ]
    )  # fmt: skip


def _media(draw: random.Random) -> str:
    body = base64.b64encode(draw.randbytes(draw.choice([30, 200, 900]))).decode()
    return draw.choice(["data:image/png;base64,", "![x](data:image/png;base64,", "", "data:text/plain;base64,"]) + body


def _born(draw: random.Random) -> str:
    day = f"{draw.randint(1, 12):02d}/{draw.randint(1, 28):02d}/19{draw.randint(20, 99)}"
    return draw.choice(["DOB: ", "born on ", "date of birth ", "Birthday: "]) + day


def _url(draw: random.Random) -> str:
    secret = _run(draw, _ALNUM, draw.choice([9, 24]))
    return draw.choice(
        [
            f"postgres://app:{secret}@db.internal/app",
            f"curl -u admin:{secret} https://h/",
            f"Authorization: Bearer {secret}",
            f"https://h.example/?to={_mail(draw)}&key={secret}",
            f"hooks.slack.com/services/T{_run(draw, _ALNUM, 8)}/B{_run(draw, _ALNUM, 8)}/{secret}",
        ]
    )


_MAKERS: Final = [
    _card, _card, _iban, _phone, _phone, _mail, _mail, _address, _jwt, _assigned, _assigned, _key_file, _innocent,
    _innocent, _made, _media, _born, _url,
]  # fmt: skip


def spelled(text: str, draw: random.Random) -> str:
    """The same in another spelling: what the normaliser has to see through, or just misses."""
    plain = text.encode("utf-8", "replace")
    middle = len(text) // 2
    ways = (
        lambda: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
        lambda: draw.choice("\u200b\u200d\u2060\u00ad\ufe0f").join(text),
        lambda: quote(text, safe="", errors="replace"),
        lambda: quote(quote(text, errors="replace"), errors="replace"),
        lambda: "".join(f"\\u{ord(c):04x}" if ord(c) < 65536 and not c.isalnum() else c for c in text),
        lambda: "".join(f"&#{ord(c)};" if not c.isalnum() else c for c in text),
        lambda: base64.b64encode(plain).decode(),
        lambda: base64.b64encode(base64.b64encode(b"x: " + plain)).decode(),
        plain.hex,
        lambda: json.dumps(text),
        lambda: json.dumps(json.dumps({"v": text}))[1:-1],
        lambda: "".join(chr(0x660 + int(c)) if "0" <= c <= "9" else c for c in text),
        lambda: text.replace("a", "а").replace("o", "ο").replace("-", "–").replace(" ", "\u00a0"),
        lambda: text[:middle] + draw.choice(["\n", " ", "\\n", '"', "<b>"]) + text[middle:],
        lambda: text.upper() if draw.random() < 0.5 else text.swapcase(),
        lambda: text[: draw.randint(0, len(text))] + text,
    )
    return draw.choice(ways)()


class Payloads:
    """An endless stream of payloads, the same for the same seed.

    Args:
        seed: Where the stream begins.
    """

    def __init__(self, seed: int) -> None:
        self._draw = draw = random.Random(seed)
        self._values = [maker(draw) for maker in _MAKERS for _ in range(120)]
        for detector in built_in("strict"):
            self._values += [like(detector.pattern, draw) for _ in range(6)]
        self._values += [spelled(value, draw) for value in self._values]
        telling = [word for words in SENSITIVE.values() for word in words.split()]
        telling += [f"customer_{word}" for word in telling[::7]] + [word.upper() for word in telling[::5]]
        telling += ["cardNumber", "Card-Number", "phone_number", "dateOfBirth", "dbPassword", "ship_address1", "E-Mail"]
        self._names = [*sorted(STRUCTURAL) * 4, *telling, *_NAMES, *draw.choices(self._values, k=30), *_ODD]
        self._recent: list[Any] = []
        self._padding = " ".join(draw.choices([*_PROSE, *(_innocent(draw) for _ in range(20))], k=2500))

    def next(self) -> Any:
        """The next payload: a new one, or an earlier one that was changed a little."""
        draw = self._draw
        again = self._recent and draw.random() < 0.3
        payload = self._mutated(draw.choice(self._recent), 6) if again else self._fresh()
        if len(self._recent) < 64:
            self._recent.append(payload)
        else:
            self._recent[draw.randrange(64)] = payload
        return payload

    def _fresh(self) -> Any:
        kind = self._draw.random()
        if kind < 0.35:
            return {"input": [self._message() for _ in range(self._draw.randint(1, 4))]}
        if kind < 0.5:
            return self._call()
        if kind < 0.6:
            return self._person()
        return self._value(self._draw.choice([1, 3, 4, 5]))

    # `random.choice` and `randrange` take five times as long as this.
    def _pick(self, pool: list[Any]) -> Any:
        return pool[int(self._draw.random() * len(pool))]

    def _text(self) -> str:
        draw = self._draw
        pieces: list[str] = []
        for _ in range(int(draw.random() * 7)):
            kind = draw.random()
            if kind < 0.05:
                made = self._pick(_MAKERS)(draw)
                pieces.append(made if draw.random() < 0.6 else spelled(made, draw))
            elif kind < 0.35:
                pieces.append(self._pick(self._values))
            elif kind < 0.8:
                pieces.append(self._pick(_PROSE))
            else:
                pieces.append(self._pick(_ODD))
        text = str(self._pick([" ", " ", "", "\n", ", "])).join(pieces)
        if draw.random() < 0.15:
            text = self._torn(text)
        if draw.random() < 0.01:
            start = int(draw.random() * 4000)
            text = self._padding[start : start + 6000] + text
        return text

    def _torn(self, text: str) -> str:
        draw = self._draw
        low, high = sorted((int(draw.random() * (len(text) + 1)), int(draw.random() * (len(text) + 1))))
        way = int(draw.random() * 4)
        if way == 0:
            return text[:low] + text[high:]
        if way == 1:
            return text[:high] + text[low:]
        if way == 2:
            return f"{text[:low]}{self._pick(_ODD)}{text[low:]}"
        return text[low:high]

    def _number(self) -> Any:
        draw = self._draw
        kind = draw.random()
        if kind < 0.5:
            return int(draw.random() * 1000)
        if kind < 0.7:
            return int(re.sub(r"[^0-9]", "", _card(draw) if kind < 0.6 else _phone(draw)))
        if kind < 0.9:
            return round(draw.random() * 10 ** draw.randint(0, 14), draw.randint(0, 4))
        return draw.choice([0, -1, -0.0, 1e300, 5e-324, 2**70, -(2**70), 1.0, 4.1e15, 9_090_123_456_789, 1_700_000_000])

    def _leaf(self) -> Any:
        kind = self._draw.random()
        if kind < 0.7:
            return self._text()
        if kind < 0.9:
            return self._number()
        return self._pick([None, True, False])

    def _name(self) -> str:
        kind = self._draw.random()
        if kind < 0.4:
            return str(self._pick(_PLAIN_NAMES))
        return str(self._pick(self._names)) if kind < 0.97 else self._text()

    def _value(self, depth: int) -> Any:
        kind = self._draw.random()
        if depth <= 0 or kind < 0.15:
            return self._leaf()
        if kind < 0.6:
            return {self._name(): self._value(depth - 1) for _ in range(int(self._draw.random() * 5))}
        if kind < 0.8:
            return [self._value(depth - 1) for _ in range(int(self._draw.random() * 4))]
        return self._written(self._value(depth - 1))

    def _written(self, value: Any) -> str:
        """JSON in a string, in the many ways people write it; now and then not quite JSON."""
        kind = self._draw.random()
        if kind < 0.4:
            text = json.dumps(value)
        elif kind < 0.6:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        elif kind < 0.7:
            text = json.dumps(value, indent=self._pick([0, 1, 2, 4, "\t"]))
        elif kind < 0.78:
            text = json.dumps(json.dumps(value))
        elif kind < 0.86:
            text = "\n".join(json.dumps(item) for item in (value, self._leaf()))
        elif kind < 0.92:
            text = repr(value)
        else:
            text = self._odd_json(json.dumps(value))
        return text if self._draw.random() < 0.9 else f"\n {text} "

    def _odd_json(self, text: str) -> str:
        name, leaf = json.dumps(self._name()), json.dumps(self._leaf())
        ways = [
            text[:-1],
            f"{{{name}: 1, {name}: {leaf}, {name}: {text}}}",
            f"[1e999, {leaf}, -1E+400]",
            f"```json\n{text}\n```",
            f"[NaN, {leaf}]",
            f"\ufeff{text}",
        ]
        return str(self._pick(ways))

    def _message(self) -> dict[str, Any]:
        if self._draw.random() < 0.3:
            return self._call()
        text = self._text()
        content = text if self._draw.random() < 0.6 else [{"type": "input_text", "text": text}]
        return {"role": self._pick(["user", "assistant", "system"]), "content": content}

    def _call(self) -> dict[str, Any]:
        call = f"call_{int(self._draw.random() * 10**9)}"
        if self._draw.random() < 0.5:
            arguments = {self._name(): self._leaf() for _ in range(int(self._draw.random() * 4))}
            return {"type": "function_call", "call_id": call, "name": "pay", "arguments": self._written(arguments)}
        return {"type": "function_call_output", "call_id": call, "output": self._written(self._person())}

    def _person(self) -> dict[str, Any]:
        name = self._pick(["Quux", "Rosalind Quux", "Zoë", "Smith", "user", "O'Hara"])
        person = {"name": name, self._name(): self._leaf(), "email": self._pick(self._values)}
        person["note"] = f"{name} {self._text()} {name.upper()}"
        if self._draw.random() < 0.4:
            person["address"] = {"street": self._text(), "zip": self._number(), "type": "string"}
        return person

    def _mutated(self, value: Any, depth: int) -> Any:
        draw = self._draw
        if depth and type(value) is dict and value and draw.random() < 0.9:
            members = dict(value)
            name = self._pick(list(value))
            kind = draw.random()
            if kind < 0.7:
                members[name] = self._mutated(value[name], depth - 1)
            elif kind < 0.85:
                members[self._name()] = value[name]
            else:
                del members[name]
            return members
        if depth and type(value) is list and value and draw.random() < 0.9:
            items = list(value)
            index = int(draw.random() * len(value))
            kind = draw.random()
            if kind < 0.6:
                items[index] = self._mutated(value[index], depth - 1)
            elif kind < 0.8:
                items.append(value[index])
            else:
                del items[index]
            return items
        if type(value) is str:
            return self._torn(value) if draw.random() < 0.7 else f"{value} {self._text()}"
        return self._value(1)
