"""Field names that make their value sensitive, whatever it looks like."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Any, Final

from .validators import words

__all__ = ["FIELD_WORDS", "could_be_person", "is_person", "kind_of_field", "looks_like_schema"]

_WORDS: Final[dict[str, str]] = {
    "SECRET": """
        password passwd pwd passphrase passcode passwort kennwort motdepasse contrasena senha parola
        wachtwoord haslo secret secretkey clientsecret apikey accesskey accesstoken refreshtoken idtoken
        authtoken sessiontoken bearertoken securitytoken authorization proxyauthorization cookie setcookie
        xapikey privatekey credential credentials otp onetimepassword pin pincode cvv cvc cvv2 securitycode
        signingkey webhooksecret sessionid sessioncookie recoverycode recoverycodes backupcodes seedphrase
        mnemonic пароль 密码 密碼 パスワード 비밀번호
    """,
    "EMAIL": """
        email emailaddress mail mailaddress correo correoelectronico courriel epost 邮箱 電子郵件 メール 이메일 почта
    """,
    "PHONE": """
        phone phonenumber phoneno mobile mobilenumber mobilephone telephone telephonenumber tel telefon
        telefonnummer telefono telefone telephoneno cellphone cell cellnumber fax faxnumber handy
        handynummer celular whatsapp msisdn contactnumber 电话 電話 電話番号 手机 手机号 전화번호 телефон
    """,
    "SSN": """ssn ssnumber socialsecuritynumber socialsecurityno socialsecurity""",
    "NATIONAL_ID": """
        nationalid nationalidnumber nin taxid taxnumber taxpayerid
        tin itin passport passportnumber passportno driverslicense driverslicensenumber driverlicense
        driverlicensenumber drivinglicence licensenumber idnumber idcardnumber identitynumber aadhaar aadhar
        cpf cnpj dni nie nif curp rut personnummer fodselsnummer bsn steuerid steuernummer
        sozialversicherungsnummer insee nss nhsnumber medicareid medicarenumber insurancenumber
        policyholderid 身份证 身份证号
    """,
    "CARD": """
        card cardnumber cardno creditcard creditcardnumber ccnumber ccnum debitcard debitcardnumber pan
        kartennummer numerotarjeta cartebancaire
    """,
    "ACCOUNT": """
        iban accountnumber accountno bankaccount bankaccountnumber acctnumber routingnumber sortcode swift
        swiftcode bic kontonummer numerocuenta cuenta walletaddress
    """,
    "DATE_OF_BIRTH": """
        dob dateofbirth birthdate birthday birthdatetime geburtsdatum geburtstag fechanacimiento
        fechadenacimiento datedenaissance datanascimento geboortedatum 生年月日 出生日期
    """,
    "NAME": """
        firstname lastname fullname middlename surname givenname givennames familyname maidenname
        preferredname legalname displayname realname vorname nachname nombrecompleto apellido apellidos
        prenom nomdefamille sobrenome customername clientname cardholder cardholdername passengername
        patientname guestname accountholder accountholdername beneficiary beneficiaryname contactname
        personname recipientname sendername employeename studentname nameoncard mothersmaidenname 姓名 氏名 이름
        имя фамилия
    """,
    "ADDRESS": """
        address address1 address2 addressline addressline1 addressline2 streetaddress street street1 street2
        homeaddress billingaddress shippingaddress mailingaddress deliveryaddress postaladdress
        residentialaddress zip zipcode postcode postalcode plz adresse anschrift strasse hausnummer
        direccion domicilio calle codigopostal endereco indirizzo adres 地址 住所 주소 адрес
    """,
    "IP": """
        ip ipaddress ipaddr clientip remoteip remoteaddr sourceip userip
    """,
    "MEDICAL": """
        diagnosis medicalrecordnumber mrn bloodtype
    """,
}  # fmt: skip

_KIND: Final = {word: kind for kind, words in _WORDS.items() for word in words.split()}
FIELD_WORDS: Final = frozenset(_KIND)
"""How every name ends that says what its value is, signs and trailing digits aside."""

# As the last of several words these say too little: sim_card, gpio_pin, mail_pan.
_ALONE: Final = words(
    """
    card pin pan mail cell mobile tel ip secret cookie swift bic street zip cuenta handy tin nin
    """
)
_SUFFIXES: Final = tuple(sorted((word for word in _KIND if len(word) >= 7 and word.isascii()), key=len, reverse=True))
_PARTS: Final = re.compile(r"[^\W\d_]+|\d+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KNOWN: Final[dict[str, str | None]] = {}
_LONGEST: Final = 200
"""Characters of a name that is remembered."""


def kind_of_field(name: str) -> str | None:
    """What a field of this name holds, or None: `card_number`, `cardNumber` and `Card-Number` are one.

    A longer name counts by its end (`customer_phone_number`), which keeps `tokens` and `address_count`
    what they are.
    """
    try:
        return _KNOWN[name]
    except KeyError:
        pass
    # A name that holds a pseudonym was content; the same before and after it was redacted.
    kind = _judged(name[-80:]) if "<" not in name else None
    if len(_KNOWN) < 10_000 and len(name) <= _LONGEST:
        _KNOWN[name] = kind
    return kind


def _judged(name: str) -> str | None:
    plain = "".join(c for c in unicodedata.normalize("NFKD", _CAMEL.sub("_", name)) if not unicodedata.combining(c))
    parts = _PARTS.findall(unicodedata.normalize("NFC", plain).casefold())
    # A number so long is a value, perhaps one that redaction wrote: it must not lend the name a meaning it had not.
    if len(parts) > 1 and parts[-1].isdigit() and parts[-1] not in {"1", "2"} and len(parts[-1]) < 13:
        parts.pop()
    for count in range(min(len(parts), 5), 0, -1):
        word = "".join(parts[-count:])
        kind = _KIND.get(word)
        if kind is not None and (count == len(parts) or word not in _ALONE):
            return kind
    if len(parts) > 1 and parts[-1] in {"1", "2"}:
        return _judged("_".join(parts[:-1]))
    if not parts or not parts[-1].endswith(_SUFFIXES):
        return None
    return next(_KIND[suffix] for suffix in _SUFFIXES if parts[-1].endswith(suffix))


_SCHEMA_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_SCHEMA_KEYS: Final = frozenset({"$ref", "anyOf", "oneOf", "allOf", "enum"})


def looks_like_schema(value: dict[str, Any]) -> bool:
    """Whether this is the JSON Schema of a field rather than its value."""
    kind = value.get("type")
    return (type(kind) is str and kind in _SCHEMA_TYPES) or not _SCHEMA_KEYS.isdisjoint(value)


_NOT_OF_A_PERSON: Final = frozenset(
    {"type", "arguments", "role", "parameters", "call_id", "description", "input_schema", "content", "function"}
)
_OF_A_PERSON: Final = frozenset({"EMAIL", "PHONE", "DATE_OF_BIRTH", "NATIONAL_ID", "SSN", "ADDRESS"})


def is_person(value: dict[Any, Any]) -> bool:
    """Whether a mapping with a `name` is about somebody: it also has their mail, phone, address or birthday."""
    return type(value.get("name")) in {str, dict} and could_be_person(value)


def could_be_person(names: Collection[Any]) -> bool:
    """Whether a mapping of these names is about somebody if its `name` is one."""
    return _NOT_OF_A_PERSON.isdisjoint(names) and any(
        type(name) is str and kind_of_field(name) in _OF_A_PERSON for name in names
    )
