"""What happens to a draft on the background thread: digest, redact, store.

The order matters. Digests are taken of the raw value, so a change can be proved later without the
value; then the value is redacted; only then does anything reach the vault. Whatever goes wrong on
the way drops the payload and keeps the event.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from ._guard import safely
from ._version import __version__
from .draft import Draft
from .errors import VaultDenied, VaultError, VaultUnavailable
from .event import EventStatus, RunEvent, Shared, timestamp
from .keys import Keys
from .record import Record
from .redaction import Redactor
from .vault import RecordHeader, Seal, VaultWriter

__all__ = ["Pipeline"]

_log: Final = logging.getLogger("sealtrace")

OnSealed = Callable[[Record, Seal], None]


class OnRedacted(Protocol):
    """What is told of each redaction."""

    def __call__(self, seconds: float, *, failed: bool) -> None:
        """One payload, redacted or dropped."""
        ...


class Pipeline:
    """The recorder's sink.

    Args:
        redactor: Makes payloads safe.
        writer: Stores them; None where no vault is set, and then nothing is kept.
        keys: For digests.
        sdk_version: Version of the Agents SDK, for the manifest.
        on_sealed: Called once a record's manifest is stored.
        on_redacted: Told the seconds each redaction took, and whether it failed.
    """

    def __init__(
        self,
        redactor: Redactor,
        writer: VaultWriter | None,
        keys: Keys,
        *,
        sdk_version: str,
        on_sealed: OnSealed,
        on_redacted: OnRedacted,
    ) -> None:
        self._redactor = redactor
        self._writer = writer
        self._keys = keys
        self._sdk_version = sdk_version
        self._on_sealed = on_sealed
        self._on_redacted = on_redacted
        self._told: set[str] = set()
        self._prepared = False

    def write(self, draft: Draft, record: Record) -> None:
        """Digest, redact and hand one event to the vault writer."""
        if self._writer is None:
            return
        if not self._prepared:
            # Here, so that neither the agent nor a payload's deadline waits for what is slow to start.
            self._prepared = True
            safely(self._redactor.prepare)
        event = self._made_safe(draft, record)
        try:
            self._writer.append(event)
        except VaultError as error:
            self._tell(error)
        except Exception:
            # A fault of ours: the event is lost, and the manifest must say so.
            record.count_drop()
            raise

    def _made_safe(self, draft: Draft, record: Record) -> RunEvent:
        if draft.dropped:
            return draft.event(None, EventStatus.PAYLOAD_DROPPED)
        if record.memory is None:
            record.memory = self._redactor.memory()
        started = time.perf_counter()
        try:
            digests = self._digests(draft.digest or {})
            done = self._redactor.redact(
                draft.payload, memory=record.memory, kind=draft.kind, agent=draft.agent, tool=draft.tool
            )
        except BaseException:  # noqa: BLE001 - fail closed: whatever it was, the raw payload goes no further
            record.redaction_failed += 1
            safely(self._on_redacted, time.perf_counter() - started, failed=True)
            return draft.event(None, EventStatus.REDACTION_FAILED)
        safely(self._on_redacted, time.perf_counter() - started, failed=False)
        return draft.event(done.value, EventStatus.RECORDED, digests=digests, redactions=done.counts)

    def _digests(self, raw: dict[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in raw.items():
            if value is None:
                continue
            if isinstance(value, list) and value and isinstance(value[0], Shared):
                shared: list[Shared] = value
                new = [item for item in shared if item.digest is None]
                chain = "".join(self._digest(item) for item in shared)
                out[name] = self._keys.digest(chain.encode())
                if new:
                    out[f"{name}_new"] = [item.digest for item in new]
            else:
                out[name] = self._digest(value)
        return out

    def _digest(self, value: Any) -> str:
        if isinstance(value, Shared):
            if value.digest is None:
                value.digest = self._keys.digest(_canonical(value.value))
            return value.digest
        return self._keys.digest(_canonical(value))

    def seal(self, record: Record) -> bool:
        """Store the record's manifest and say so on a span."""
        if self._writer is None or record.event_count == 0:
            return True
        try:
            seal = self._writer.seal(self._header(record))
        except (VaultUnavailable, VaultDenied) as error:
            # A grant can be mended while the process runs, so what is denied is tried again as well.
            self._tell(error)
            return False
        except VaultError as error:
            self._tell(error)
            self._writer.abandon(record.record_id)
            return True
        self._on_sealed(record, seal)
        return True

    def tick(self) -> None:
        """Store segments that have waited long enough."""
        if self._writer is not None:
            try:
                self._writer.tick()
            except VaultError as error:
                self._tell(error)

    def drain(self) -> bool:
        """Store everything that can be stored now."""
        if self._writer is None:
            return True
        try:
            return self._writer.flush()
        except VaultError as error:
            self._tell(error)
            return False

    def reset(self) -> None:
        """Forget the parent's records: this is a forked child."""
        self._prepared = False
        if self._writer is not None:
            self._writer.reset()

    def _header(self, record: Record) -> RecordHeader:
        return RecordHeader(
            run_id=record.run_id,
            record_id=record.record_id,
            workflow_name=record.workflow_name,
            started_at=timestamp(record.started_ns),
            ended_at=timestamp(record.ended_ns or record.started_ns),
            trace_ids=tuple(record.trace_ids),
            root_span_id=f"{record.root.span_id:016x}" if record.root is not None and record.root.is_valid else None,
            fidelity=record.fidelity,
            status=record.status,
            dropped=record.dropped,
            redaction_failed=record.redaction_failed,
            open_events=record.open_operations,
            agents=tuple(record.agents),
            tools=tuple(record.tools),
            models=tuple(record.models),
            input_tokens=record.input_tokens,
            output_tokens=record.output_tokens,
            group_tag=record.group_tag,
            sdk_version=self._sdk_version,
            sealtrace_version=__version__,
            key_id=self._keys.key_id,
            key_ephemeral=self._keys.ephemeral,
            event_count=record.event_count,
        )

    def _tell(self, error: VaultError) -> None:
        kind = type(error).__name__
        if kind not in self._told:
            self._told.add(kind)
            _log.warning("sealtrace cannot store payloads (%s): %s", kind, error)


def _canonical(value: Any) -> bytes:
    # Key order is kept: a tool result is shown to the model in its own order, so order is content.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")
