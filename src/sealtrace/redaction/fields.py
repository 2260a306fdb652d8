"""Field names that make their value sensitive, whatever it looks like."""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["kind_of_field", "looks_like_schema"]

_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "SECRET": (
        "password", "passwd", "pwd", "passphrase", "passwort", "motdepasse", "contrasena", "senha", "secret",
        "secretkey", "clientsecret", "apikey", "accesskey", "accesstoken", "refreshtoken", "idtoken", "authtoken",
        "sessiontoken", "bearertoken", "authorization", "proxyauthorization", "cookie", "setcookie", "xapikey",
        "privatekey", "credential", "credentials", "otp", "pin", "pincode", "cvv", "cvc", "securitycode",
        "signingkey", "webhooksecret", "sessionid",
    ),
    "EMAIL": (
        "email", "emailaddress", "mail", "useremail", "customeremail", "contactemail",
    ),
    "PHONE": (
        "phone", "phonenumber", "mobile", "mobilenumber", "telephone", "tel", "telefon", "telefono", "cellphone",
        "fax",
    ),
    "NATIONAL_ID": (
        "ssn", "socialsecuritynumber", "socialsecurity", "nationalid", "nin", "taxid", "passport", "passportnumber",
        "driverslicense", "driverlicense", "licensenumber", "aadhaar", "cpf", "dni", "nie",
    ),
    "CARD": (
        "card", "cardnumber", "creditcard", "creditcardnumber", "ccnumber", "debitcard", "pan",
    ),
    "ACCOUNT": (
        "iban", "accountnumber", "bankaccount", "routingnumber", "sortcode", "kontonummer",
    ),
    "DATE_OF_BIRTH": (
        "dob", "dateofbirth", "birthdate", "birthday", "geburtsdatum",
    ),
    "NAME": (
        "firstname", "lastname", "fullname", "middlename", "surname", "givenname", "familyname", "maidenname",
        "vorname", "nachname", "customername", "cardholder", "cardholdername", "passengername",
    ),
    "ADDRESS": (
        "address", "address1", "address2", "addressline1", "addressline2", "streetaddress", "street", "homeaddress",
        "billingaddress", "shippingaddress", "zip", "zipcode", "postcode", "postalcode", "adresse", "strasse",
    ),
}  # fmt: skip

_KIND: Final = {word: kind for kind, words in _WORDS.items() for word in words}
_SUFFIXES: Final = tuple(sorted((word for word in _KIND if len(word) >= 6), key=len, reverse=True))
_NOT_LETTERS: Final = re.compile(r"[^a-z0-9]+")
_KNOWN: Final[dict[str, str | None]] = {}


def kind_of_field(name: str) -> str | None:
    """What a field of this name holds, or None: `card_number`, `cardNumber` and `Card-Number` are one.

    A longer name counts by its end (`customer_phone_number`), which keeps `tokens` and `address_count`
    what they are.
    """
    try:
        return _KNOWN[name]
    except KeyError:
        pass
    word = _NOT_LETTERS.sub("", name.casefold())
    kind = _KIND.get(word) or next((_KIND[suffix] for suffix in _SUFFIXES if word.endswith(suffix)), None)
    if len(_KNOWN) < 10_000:
        _KNOWN[name] = kind
    return kind


_SCHEMA_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_SCHEMA_KEYS: Final = frozenset({"$ref", "anyOf", "oneOf", "allOf", "enum"})


def looks_like_schema(value: dict[str, Any]) -> bool:
    """Whether this is the JSON Schema of a field rather than its value."""
    kind = value.get("type")
    return (type(kind) is str and kind in _SCHEMA_TYPES) or not _SCHEMA_KEYS.isdisjoint(value)
