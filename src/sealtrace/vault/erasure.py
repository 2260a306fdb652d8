"""Forgetting: by run, by session, and by age where no lifecycle does it.

An erasure is planned first and shown; carrying it out writes who erased what and why before the
first object goes, and what came of it after the last. The audit lines stay, and a mark that keeps
what a spool still holds of the run from coming back (see `tombstones`).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import logging
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from ..errors import RecordDamaged, VaultError
from ..event import canonical_run_id
from ..settings import Retention
from . import layout
from .audit import Audit
from .reader import VaultReader
from .stores.base import ObjectInfo, Store
from .tombstones import Tombstones

__all__ = ["Erasure", "carry_out", "expire", "plan_again", "plan_for_runs", "plan_for_session"]

_log: Final = logging.getLogger("sealtrace")

Progress = Callable[[int, int], None]
"""Called with how many of how many objects are done."""


@dataclasses.dataclass(frozen=True, slots=True)
class Erasure:
    """What would be erased.

    Attributes:
        runs: Canonical run ids, to be erased and marked as erased.
        objects: Every object of theirs, in every class and record.
        sessions: Tags of the session that was asked for, to be marked as erased up to now.
        undecided: Records without a readable manifest whose session cannot be known; only where
            a session was asked for. They are not erased.
    """

    runs: tuple[str, ...]
    objects: tuple[ObjectInfo, ...]
    sessions: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all objects."""
        return sum(item.size for item in self.objects)


def plan_for_runs(store: Store, run_ids: list[str], *, absent: bool = False) -> Erasure:
    """Everything of these runs, whatever is under their prefixes.

    Args:
        store: The vault's store.
        run_ids: The runs.
        absent: Also runs of which nothing is there: they may still wait in a spool.

    Raises:
        VaultError: The store cannot be read.
    """
    runs: list[str] = []
    objects: list[ObjectInfo] = []
    for run_id in dict.fromkeys(canonical_run_id(run_id) for run_id in run_ids):
        found = [item for klass in layout.CLASSES for item in store.list(layout.run_prefix(klass, run_id))]
        if found or absent:
            runs.append(run_id)
            objects += found
    return Erasure(tuple(runs), tuple(objects))


def plan_for_session(store: Store, tags: Collection[str]) -> Erasure:
    """Everything of the runs whose manifests carry one of these tags: a session has one per key it was recorded under.

    A run that continues another of the session in a record that was never finished is found through
    its finished record; a run with no readable manifest at all is listed as undecided.

    Raises:
        VaultError: The store cannot be read.
    """
    with_manifest: set[str] = set()
    matching: list[str] = []
    for record in VaultReader(store).recent(10**9):
        try:
            header = record.header
        except RecordDamaged:
            continue
        with_manifest.add(record.run_id)
        if header is not None and header.group_tag in tags:
            matching.append(record.run_id)
    plan = plan_for_runs(store, sorted(matching))
    undecided = _everyone(store) - with_manifest - Tombstones(store).all()
    return dataclasses.replace(plan, sessions=tuple(tags), undecided=tuple(sorted(undecided)))


def plan_again(store: Store) -> Erasure:
    """What has been stored of runs since they were erased: from spools, and by processes that still ran.

    Raises:
        VaultError: The store cannot be read.
    """
    return plan_for_runs(store, sorted(_everyone(store) & _erased(store)))


def _erased(store: Store) -> set[str]:
    """The ids of runs that were erased by name, and of those in the vault that were erased with their session."""
    tombstones = Tombstones(store)
    runs, sessions = set(tombstones.all()), tombstones.sessions()
    if sessions:
        runs |= {record.run_id for record in VaultReader(store).recent(10**9, erased=True) if record.covered(sessions)}
    return runs


def _everyone(store: Store) -> set[str]:
    """The id of every run that has anything in the vault."""
    return {
        f"trace_{parts['run']}"
        for klass in layout.CLASSES
        for item in store.list(f"{klass}/v1/")
        if (parts := layout.parse_key(item.key)) is not None
    }


def carry_out(store: Store, plan: Erasure, audit: Audit, *, progress: Progress | None = None) -> int:
    """Erase what was planned, and what was stored of the same runs since; objects erased.

    The runs are marked first, so that nothing of them is shown from here on, whatever becomes of the rest.
    Then go the keys of what is encrypted: where copies of the other objects lie elsewhere, or may not be
    deleted, nobody can read them.

    Raises:
        VaultError: Something could not be erased. What is left can be planned and erased again.
    """
    about: dict[str, Any] = {"runs": list(plan.runs), "objects": len(plan.objects), "bytes": plan.bytes}
    if plan.sessions:
        about["sessions"] = list(plan.sessions)
    line = audit.write("erase", about)
    tombstones = Tombstones(store)
    for tag in plan.sessions:
        tombstones.put_session(tag, line.at)
    for run_id in plan.runs:
        tombstones.put(run_id)
    done = 0
    while True:
        for item in sorted(plan.objects, key=lambda item: not item.key.startswith(f"{layout.KEYS}/")):
            store.delete(item.key)
            done += 1
            if progress is not None:
                progress(done, max(done, len(plan.objects)))
        # A process may still be recording the run: only an empty listing is an end.
        plan = plan_for_runs(store, list(plan.runs))
        if not plan.objects:
            break
    audit.write("erased", about | {"objects": done})
    return done


def expire(
    store: Store,
    retention: Retention,
    *,
    now: dt.datetime | None = None,
    dry_run: bool = False,
    audit: Audit | None = None,
) -> list[ObjectInfo]:
    """Delete what is past its time, for stores whose lifecycle does not; the objects concerned.

    What has been stored of a run since it was erased is always past its time.
    A manifest says when its segments and itself expire; where there is none, or it cannot be read,
    an object's age and `retention` decide. Audit lines are kept as long as the meta class.

    Raises:
        VaultError: The store cannot be read, or something cannot be deleted.
    """
    moment = now or dt.datetime.now(dt.UTC)
    found = sorted(_expired(store, retention, moment), key=lambda item: ("/manifest-" in item.key, item.key))
    if dry_run or not found:
        return found
    for item in found:
        store.delete(item.key)
    if audit is not None:
        audit.write("expired", {"objects": len(found), "bytes": sum(item.size for item in found)})
    return found


def _expired(store: Store, retention: Retention, now: dt.datetime) -> Iterator[ObjectInfo]:
    stated, erased = _stated_times(store), _erased(store)
    for klass in layout.CLASSES:
        for item in store.list(f"{klass}/v1/"):
            parts = layout.parse_key(item.key)
            if parts is not None and f"trace_{parts['run']}" in erased:
                yield item
                continue
            by_age = item.modified + dt.timedelta(days=layout.days_of(klass, retention))
            named = item.key.rpartition("/")[0] if klass == layout.KEYS else item.key
            if stated.get(named, by_age) <= now:
                yield item


def _stated_times(store: Store) -> dict[str, dt.datetime]:
    """When each object expires as manifests say, by its key; wrapped keys by the folder they lie in."""
    out: dict[str, dt.datetime] = {}
    for record in VaultReader(store).recent(10**9):
        try:
            manifest = record.manifest
        except VaultError as error:
            _log.warning("sealtrace goes by age where a manifest cannot be read: %s", error)
            continue
        if manifest is not None:
            times = {segment.key: dt.datetime.fromisoformat(segment.expires_at) for segment in manifest.segments}
            out |= times
            sealed = [time for key, time in times.items() if layout.is_sealed(key)]
            if sealed:
                out[layout.record_prefix(layout.KEYS, record.run_id, record.record_id)[:-1]] = max(sealed)
            out[record.objects[0].key] = dt.datetime.fromisoformat(manifest.expires_at)
    return out
