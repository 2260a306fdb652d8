"""`sealtrace vault`: look after the payload store."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from ..errors import RunNotFound, SettingsError
from ..settings import Settings, load_settings
from ._exits import OK, PROBLEM
from ._options import AsJson, Vault, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..vault import Audit, Erasure, S3Store, Store

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Look after the payload store.")

_Reason = Annotated[str, typer.Option(help="Why; kept in the audit lines.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do it; without, only say what would be done.")]
_FORMS: Final = ("cloudformation", "terraform", "policies", "haproxy")


@app.command()
def init(
    vault: Vault = None,
    show: Annotated[
        str | None,
        typer.Option("--print", help=f"Do nothing, print: {', '.join(_FORMS)}.", show_default=False),
    ] = None,
    roles_for: Annotated[
        str | None,
        typer.Option("--create-roles", metavar="ARN", help="Also make the three roles; ARN may take them."),
    ] = None,
) -> int:
    """Make a bucket fit to be a vault: access block, policy, encryption, lifecycle. Safe to do again.

    Rules and statements of others stay.
    """
    settings, store = _bucket(vault)
    if show == "haproxy":
        from ..vault import haproxy

        typer.echo(haproxy(urlsplit(settings.endpoint_url or "").netloc or "127.0.0.1:9000"), nl=False)
        return OK
    if show is not None:
        print_json(_template(show, store, settings))
        return OK
    from ..vault import create_roles, init_bucket

    for name, outcome in init_bucket(store, settings):
        _say(f"{name}: {outcome}")
    if roles_for is None:
        _say("roles: not made; --create-roles makes them, --print has templates and policies")
        return OK
    for name, outcome in create_roles(store, settings, roles_for):
        _say(f"role {name}: {outcome}")
    return OK


def _template(form: str, store: S3Store, settings: Settings) -> dict[str, Any]:
    from ..vault import cloudformation, policies, role_policy, terraform

    if form not in _FORMS:
        raise SettingsError(f"{form!r} is none of {', '.join(_FORMS)}", setting="print")
    if form != "policies":
        return (cloudformation if form == "cloudformation" else terraform)(store.bucket, store.prefix, settings)
    key = settings.kms_key_id
    return {
        "bucket": policies.bucket_policy(
            store.bucket, store.prefix, kms_key_id=key, conditional_writes=settings.endpoint_url is None
        ),
        **{role: role_policy(role, store.bucket, store.prefix, settings) for role in policies.ROLES},
        "lifecycle": policies.lifecycle(store.prefix, settings.retention, version_days=settings.version_days),
    }


@app.command()
def check(vault: Vault = None, json: AsJson = False) -> int:
    """Audit a bucket against everything `init` sets up. Exit code 1 if anything is wrong."""
    from ..vault import check_bucket

    settings, store = _bucket(vault)
    report = check_bucket(store, settings)
    if json:
        print_json(dataclasses.asdict(report) | {"ok": report.ok})
    else:
        for problem in report.problems:
            _say(f"✗ {problem.name}: {problem.message}; {problem.remedy}")
        for name, reason in report.skipped:
            _say(f"  {name}: not checked, {reason}")
        _say(f"{len(report.problems)} problems, {len(report.passed)} checks passed, {len(report.skipped)} not made")
    return OK if report.ok else PROBLEM


@app.command()
def ls(
    limit: Annotated[int, typer.Option(help="Most records to list.", min=1)] = 20,
    vault: Vault = None,
    json: AsJson = False,
) -> int:
    """List the newest records, with what their manifests say."""
    from ..vault import VaultReader

    settings, store = _store(vault)
    rows: list[dict[str, Any]] = []
    for record in VaultReader(store, settings.retention).recent(limit):
        manifest = record.manifest
        assert manifest is not None
        segments = manifest.segments
        rows.append(
            {
                "run_id": record.run_id,
                "record_id": record.record_id,
                "created_at": manifest.created_at,
                "status": manifest.header.status,
                "complete": manifest.complete,
                "events": manifest.header.event_count,
                "dropped": manifest.header.dropped,
                "bytes": sum(segment.bytes for segment in segments) + record.objects[0].size,
                "expires": {segment.klass: segment.expires_at for segment in segments},
            }
        )
    if json:
        print_json(rows)
        return OK
    for row in rows:
        extra = f", {row['dropped']} payloads dropped" if row["dropped"] else ""
        extra += "" if row["complete"] else ", recovered"
        _say(f"{row['created_at']}  {row['run_id']}  {row['status']}: {row['events']} events, {row['bytes']} B{extra}")
    return OK


@app.command()
def stats(vault: Vault = None, json: AsJson = False) -> int:
    """Count objects, bytes, runs and records by class."""
    from ..vault import layout

    _, store = _store(vault)
    out: dict[str, dict[str, Any]] = {}
    for klass in layout.CLASSES:
        with _progress(f"class {klass}", None) as advance:
            out[klass] = _counted(store, klass, advance)
    if json:
        print_json(out)
        return OK
    for klass, row in out.items():
        span = f", {row['oldest']} to {row['newest']}" if row["objects"] else ""
        _say(f"{klass}: {row['objects']} objects, {row['bytes']} B, {row['runs']} runs, {row['records']} records{span}")
    return OK


def _counted(store: Store, klass: str, advance: Callable[[int], None]) -> dict[str, Any]:
    from ..vault import layout

    objects = size = 0
    runs: set[str | None] = set()
    records: set[str | None] = set()
    times: list[str] = []
    for item in store.list(f"{klass}/v1/"):
        objects += 1
        size += item.size
        advance(objects)
        times = sorted({*times, item.modified.strftime("%Y-%m-%d")})
        times = [times[0], times[-1]]
        parts = layout.parse_key(item.key)
        if parts is not None:
            runs.add(parts["run"])
            records.add(parts["record"])
    oldest, newest = (times[0], times[-1]) if times else (None, None)
    return {
        "objects": objects, "bytes": size, "runs": len(runs), "records": len(records),
        "oldest": oldest, "newest": newest,
    }  # fmt: skip


@app.command()
def erase(
    reason: _Reason,
    run: Annotated[list[str] | None, typer.Option(help="A run id; may be repeated.", show_default=False)] = None,
    session: Annotated[
        str | None,
        typer.Option(
            help="A session: its `group_id` (with the keys recorded under), or its `tag:…`.", show_default=False
        ),
    ] = None,
    who: Annotated[str | None, typer.Option(help="Who erases; user and host by default.", show_default=False)] = None,
    again: Annotated[
        bool, typer.Option("--again", help="What was stored of runs since they were erased, as from a spool.")
    ] = False,
    absent: Annotated[
        bool, typer.Option("--absent", help="With --run: also a run that is not in the vault, or not yet.")
    ] = False,
    yes: _Yes = False,
    vault: Vault = None,
    json: AsJson = False,
) -> int:
    """Erase runs, or a session's runs, from every class and record. Says what it would do unless --yes.

    The audit lines stay, and a mark: what a spool still holds of the run, or a process goes on writing,
    is never shown, and goes with --again or `vault expire`.
    """
    from ..vault import Audit, carry_out

    if not reason.strip():
        raise SettingsError("erasing needs a reason (--reason)", setting="reason")
    settings, store = _store(vault)
    plan = _plan(store, settings, run or [], session, again=again, absent=absent)
    done = 0
    if yes and (plan.runs or plan.sessions):
        with _progress("erasing", len(plan.objects)) as advance:
            audit = Audit(store, who=who, reason=reason)
            done = carry_out(store, plan, audit, progress=lambda count, _: advance(count))
    if json:
        print_json({"runs": plan.runs, "objects": len(plan.objects), "bytes": plan.bytes, "erased": done,
                    "undecided": plan.undecided})  # fmt: skip
        return OK
    for name in plan.runs:
        _say(name)
    verb = f"erased {done} objects" if yes else f"would erase {len(plan.objects)} objects, {plan.bytes} B; --yes does"
    _say(f"{len(plan.runs)} runs: {verb}")
    for name in plan.undecided:
        _say(f"{name} has no readable manifest, so its session is not known; erase it by --run if it is one")
    return OK


def _plan(
    store: Store, settings: Settings, runs: list[str], session: str | None, *, again: bool, absent: bool
) -> Erasure:
    from ..vault import plan_again, plan_for_runs, plan_for_session

    if bool(runs) + (session is not None) + again != 1:
        raise SettingsError("say what to erase: either --run or --session, or --again")
    if again:
        return plan_again(store)
    if session is None:
        plan = plan_for_runs(store, runs, absent=absent)
        if not plan.runs:
            hint = "; if it may still wait in a spool, erase it with --absent"
            raise RunNotFound(f"nothing of {', '.join(runs)} is in {store.url}{hint}", run=runs[0])
        return plan
    return plan_for_session(store, [session] if session.startswith("tag:") else _tags(session, settings))


def _tags(group_id: str, settings: Settings) -> list[str]:
    """The session's tag under the key in force and under each earlier one."""
    from ..keys import Keys

    if settings.key is None:
        raise SettingsError("a session's tag can only be made with the `key` it was recorded under", setting="key")
    return [f"tag:{keys.tag(group_id)}" for keys in Keys.all_from_settings(settings)]


@app.command()
def restore(
    reason: _Reason,
    run: Annotated[str | None, typer.Option(help="Of this run only.", show_default=False)] = None,
    who: Annotated[str | None, typer.Option(help="Who restores; user and host by default.", show_default=False)] = None,
    yes: _Yes = False,
    vault: Vault = None,
    json: AsJson = False,
) -> int:
    """Undo overwriting, in a bucket that keeps versions. Says what it would do unless --yes.

    Every object's name holds the digest of its bytes: versions on top that do not fit are removed. Exit code 1 if
    of an object none that fits is left.
    """
    from ..vault import Audit, find_replaced, layout, put_back

    _, store = _bucket(vault)
    prefixes = [f"{klass}/v1/" if run is None else layout.run_prefix(klass, run) for klass in layout.CLASSES]
    found = [item for prefix in prefixes for item in find_replaced(store, prefix)]
    lost = [item.key for item in found if item.right is None]
    restored = [item.key for item in found if item.right is not None]
    if yes and found:
        Audit(store, who=who, reason=reason).write("restore", {"objects": restored, "lost": lost})
        for item in found:
            put_back(store, item)
    if json:
        print_json({"replaced": restored, "lost": lost, "restored": yes})
        return PROBLEM if lost else OK
    for name in restored:
        _say(f"{name}: written over; {'put back' if yes else 'the first version is there'}")
    for name in lost:
        _say(f"{name}: written over, and no version that fits its name is left")
    _say(f"{len(found)} objects were written over" + ("" if yes or not restored else "; --yes puts them back"))
    return PROBLEM if lost else OK


@app.command()
def expire(yes: _Yes = False, vault: Vault = None, json: AsJson = False) -> int:
    """Delete what is past its time, for a directory or a bucket without lifecycle. Dry run unless --yes."""
    from ..vault import expire as expire_

    settings, store = _store(vault)
    found = expire_(store, settings.retention, dry_run=not yes, audit=_audit(store) if yes else None)
    if json:
        print_json({"objects": len(found), "bytes": sum(item.size for item in found), "deleted": yes})
    else:
        verb = "deleted" if yes else "would delete"
        _say(f"{verb} {len(found)} objects, {sum(item.size for item in found)} B" + ("" if yes else "; --yes does"))
    return OK


@app.command()
def audit(vault: Vault = None, json: AsJson = False) -> int:
    """List who read, erased and expired what, and why."""
    from ..vault import audit_lines

    _, store = _store(vault)
    lines = audit_lines(store)
    if json:
        print_json([dataclasses.asdict(line) for line in lines])
        return OK
    for line in lines:
        about = ", ".join(f"{name} {_short(value)}" for name, value in line.about.items())
        _say(f"{line.at}  {line.what} by {line.who}: {line.reason or 'no reason given'} ({about})")
    return OK


def _short(value: Any) -> str:
    return " ".join(str(item) for item in _items(value)) if isinstance(value, list) else str(value)


def _items(value: Iterable[Any]) -> list[Any]:
    return list(value)


def _audit(store: Store) -> Audit:
    from ..vault import Audit

    return Audit(store, reason="past its retention")


def _store(vault: str | None) -> tuple[Settings, Store]:
    from ..vault import open_store

    settings = load_settings({"vault": vault})
    if settings.vault is None:
        raise SettingsError("no vault: pass --vault or set SEALTRACE_VAULT", setting="vault")
    return settings, open_store(settings.vault, settings)


def _bucket(vault: str | None) -> tuple[Settings, S3Store]:
    from ..vault import S3Store

    settings, store = _store(vault)
    if not isinstance(store, S3Store):
        raise SettingsError(f"{store.url} is no bucket; a directory needs no setting up", setting="vault")
    return settings, store


def _say(text: str) -> None:
    from ..run.safe import one_line

    typer.echo(one_line(text, 2000))


@contextmanager
def _progress(title: str, total: int | None) -> Generator[Callable[[int], None]]:
    """A progress bar on standard error, only where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not Console(stderr=True).is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.update(task, completed=count)
