"""What `sealtrace doctor` says of keys: which are in force, and whether whoever keeps them lets them be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..errors import SealtraceError
from ..settings import Settings
from ._checks import Level, Row

__all__ = ["key_rows"]


def key_rows(settings: Settings) -> Iterator[Row]:
    """The key of pseudonyms, earlier ones, and what encrypts and signs; each is tried as a recording process would."""
    yield from _secrets(settings)
    if settings.envelope_key is not None:
        yield _tried("encryption", lambda: _wrapped(settings))
    if settings.signing_key is not None:
        yield _tried("signing", lambda: _signed(settings))


def _secrets(settings: Settings) -> Iterator[Row]:
    from ..keys import Keys

    if settings.key is None:
        text = "none set: pseudonyms and digests differ in each process, so runs cannot be compared across processes"
        yield Row("key", Level.NOTE, f"{text}; set SEALTRACE_KEY (openssl rand -hex 32)")
        return
    try:
        current, *earlier = Keys.all_from_settings(settings)
    except SealtraceError as error:
        yield Row("key", Level.BAD, str(error))
        return
    yield Row("key", Level.OK, f"set, id {current.key_id}")
    if earlier:
        ids = ", ".join(keys.key_id for keys in earlier)
        yield Row("earlier keys", Level.OK, f"ids {ids}: their spools are drained, their records rerun exactly")


def _tried(what: str, trial: Callable[[], str]) -> Row:
    try:
        return Row(what, Level.OK, trial())
    except SealtraceError as error:
        return Row(what, Level.BAD, f"records would wait and not be stored: {error}")


def _wrapped(settings: Settings) -> str:
    from ..event import new_record_id
    from ..vault import DataKey, Keyring

    keyring, record_id = Keyring.from_settings(settings), new_record_id()
    assert keyring is not None
    keyring.wrap(DataKey.new(record_id), f"trace_{record_id}", record_id)
    return f"payloads are encrypted, under keys that {settings.envelope_key} wraps"


def _signed(settings: Settings) -> str:
    import json

    from ..vault import Signer

    signer = Signer.from_settings(settings)
    assert signer is not None
    signature = json.loads(signer.sign(b'{"trial":true}\n'))["signature"]
    return f"manifests are signed ({signature['algorithm']}), key {signature['key']}"
