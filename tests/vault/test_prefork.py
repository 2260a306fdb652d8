"""Recording in servers and workers that fork: gunicorn, Celery, multiprocessing."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from sealtrace.settings import Settings
from sealtrace.vault import VaultReader, open_store

TESTS = Path(__file__).parents[1]
EVENTS = 15
"""Of one run of the support desk."""

_BUCKET = "vault-bucket"


class Place:
    """A vault, and what the processes that record into it need to know."""

    def __init__(self, folder: Path, endpoint: str | None) -> None:
        self.endpoint = endpoint
        self.url = f"s3://{_BUCKET}/team" if endpoint else (folder / "vault").as_uri()
        self.spool = folder / "spool"
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("SEALTRACE_")} | {
            "SEALTRACE_VAULT": self.url,
            "SEALTRACE_SPOOL": str(self.spool),
            "SEALTRACE_KEY": "0123456789abcdef0123456789abcdef",
            "SEALTRACE_EXIT_TIMEOUT": "120",
            "PYTHONPATH": str(TESTS),
            "OPENAI_API_KEY": "sk-none",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        if endpoint:
            self.environ |= {
                "SEALTRACE_ENDPOINT_URL": endpoint,
                "SEALTRACE_REGION": "us-east-1",
                "SEALTRACE_ADDRESSING_STYLE": "path",
            }

    def reader(self) -> VaultReader:
        """Reads what is there."""
        settings = Settings(endpoint_url=self.endpoint, region="us-east-1", addressing_style="path")
        return VaultReader(open_store(self.url, settings))

    def stored(self) -> set[str]:
        """Ids of the runs whose manifest is there."""
        return {record.run_id for record in self.reader().recent(10_000)}

    def holds_exactly(self, runs: set[str]) -> None:
        """Each of these runs is there, once and whole; nothing else is; nothing is left to store."""
        reader = self.reader()
        assert {record.run_id for record in reader.recent(10_000)} == runs
        for run in runs:
            (record,) = reader.records(run)
            assert record.manifest is not None
            assert record.header is not None
            assert (record.manifest.complete, record.gaps(), record.header.dropped) == (True, [], 0)
            events = record.events()
            assert [event.seq for event in events] == list(range(EVENTS))
            assert all(event.payload is not None for event in events)
            listed = {segment.key for segment in record.manifest.segments}
            assert {item.key for item in record.objects if "manifest" not in item.key} == listed
        assert list(self.spool.rglob("*.spool")) == []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _bucket(port: int = 0) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    try:
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST")).close()
        client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        client.create_bucket(Bucket=_BUCKET)
        client.close()
        yield endpoint
    finally:
        server.stop()


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A directory, and a bucket."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    if request.param == "local":
        yield Place(tmp_path, None)
        return
    with _bucket() as endpoint:
        yield Place(tmp_path, endpoint)


def _until(true: Callable[[], Any], *, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes], log: Path) -> Iterator[None]:
    """Stop the process as its operator would, and see that it ends well; on a failure show what it said."""
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(180) == 0
    except BaseException:
        print(log.read_text(errors="replace")[-6000:])
        raise
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


class Gunicorn:
    """A prefork server of four workers that loaded the application before it forked them."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.master_run = uuid.uuid4().hex
        self._folder = folder

    @contextlib.contextmanager
    def running(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """Until the block ends; then it is stopped with SIGTERM."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self._address = listening.getsockname()
            descriptor = listening.fileno()
            log = self._folder / "gunicorn.log"
            command = [
                *(sys.executable, "-m", "gunicorn", "vault.prefork.web:application", "--preload", "--workers", "4"),
                *("--bind", f"fd://{descriptor}", "--graceful-timeout", "30", "--error-logfile", str(log)),
                *("--worker-tmp-dir", str(self._folder), "--no-control-socket", *options),
            ]
            environ = self.place.environ | {"MASTER_RUN": self.master_run}
            with log.open("ab") as out:
                process = subprocess.Popen(command, env=environ, pass_fds=[descriptor], stdout=out, stderr=out)
            with _ended(process, log):
                yield process

    def ask(self, path: str = "/") -> dict[str, Any]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(*self._address, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 200
            said: dict[str, Any] = json.loads(answer.read())
            return said


def test_a_prefork_server_loses_and_doubles_nothing(place: Place, tmp_path: Path) -> None:
    """Workers recycled, reloaded and stopped while they answer: every run is there once, the master's too."""
    server = Gunicorn(place, tmp_path)
    answers: list[dict[str, Any]] = []
    enough = threading.Event()

    def client() -> None:
        for _ in range(12):
            answers.append(server.ask())
            if len(answers) >= 20:
                enough.set()

    recycled = ("--max-requests", "5", "--max-requests-jitter", "3")
    with server.running(*recycled) as process, ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(client) for _ in range(4)]
        assert enough.wait(90)
        process.send_signal(signal.SIGHUP)
        for done in clients:
            done.result()
    assert len(answers) == 48
    assert len({answer["pid"] for answer in answers}) > 4
    place.holds_exactly({f"trace_{server.master_run}", *(answer["run"] for answer in answers)})


def test_a_killed_worker_leaves_its_spool_to_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bucket away and every worker killed, what they had taken is stored by those that follow."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    port = _free_port()
    place = Place(tmp_path, f"http://127.0.0.1:{port}")
    server = Gunicorn(place, tmp_path)
    with server.running():
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(server.ask, ["/flushed"] * 12))
        assert [answer["stored"] for answer in answers] == [False] * 12
        killed = {answer["pid"] for answer in answers}
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        runs = {f"trace_{server.master_run}", *(answer["run"] for answer in answers)}
        with _bucket(port):
            last = server.ask("/flushed")
            assert last["pid"] not in killed
            runs.add(last["run"])
            _until(lambda: place.stored() == runs)
            place.holds_exactly(runs)


class Celery:
    """A Celery worker with a pool of four forked processes; its broker is a folder."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._folder = folder
        self._environ = place.environ | {"CELERY_HOME": str(folder)}
        for name in ("queue", "control", "results"):
            (folder / name).mkdir()

    def send(self, runs: list[str]) -> None:
        """Queue a task for each."""
        code = "import sys; from vault.prefork.tasks import converse; [converse.delay(run) for run in sys.argv[1:]]"
        environ = self._environ | {"SEALTRACE_ENABLED": "false"}
        subprocess.run([sys.executable, "-c", code, *runs], env=environ, check=True)

    @contextlib.contextmanager
    def running(self, *options: str) -> Iterator[None]:
        """Until the block ends; then it is stopped with SIGTERM, which lets tasks end."""
        log = self._folder / "celery.log"
        command = [
            *(sys.executable, "-m", "celery", "-A", "vault.prefork.tasks", "worker", "--pool", "prefork"),
            *("--concurrency", "4", *options),
        ]
        with log.open("ab") as out:
            process = subprocess.Popen(command, env=self._environ, stdout=out, stderr=out)
        with _ended(process, log):
            yield

    def results(self) -> list[dict[str, Any]]:
        """Results of the tasks that have ended."""
        found = []
        for path in (self._folder / "results").iterdir():
            with contextlib.suppress(ValueError):  # being written just now
                found.append(json.loads(path.read_bytes()))
        return found


def test_a_celery_worker_loses_and_doubles_nothing(place: Place, tmp_path: Path) -> None:
    """Pool processes leave without exit handlers, after three tasks or at a warm shutdown: every run is there once."""
    worker = Celery(place, tmp_path)
    runs = [f"trace_{uuid.uuid4().hex}" for _ in range(24)]
    worker.send(runs)
    with worker.running("--max-tasks-per-child", "3"):
        _until(lambda: len(worker.results()) == len(runs))
    results = worker.results()
    assert [result["status"] for result in results] == ["SUCCESS"] * len(runs)
    assert len({result["result"] for result in results}) >= 8
    place.holds_exactly(set(runs))


@pytest.mark.parametrize("spooling", [True, False], ids=["spool", "memory"])
@pytest.mark.parametrize(("method", "children"), [("fork", 8), ("forkserver", 2), ("spawn", 2), ("bare", 8)])
def test_children_made_while_threads_record(tmp_path: Path, method: str, children: int, *, spooling: bool) -> None:
    """Children that record a run and end at once, made while two threads record: every run is there once."""
    place = Place(tmp_path, None)
    if not spooling:
        del place.environ["SEALTRACE_SPOOL"]
    folder = tmp_path / "ended"
    folder.mkdir()
    command = [sys.executable, "-m", "vault.prefork.forking", method, str(children), str(folder)]
    done = subprocess.run(command, env=place.environ, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr[-4000:]
    runs = {path.name for path in folder.iterdir()}
    assert len(runs) > children
    place.holds_exactly(runs)
    shutil.rmtree(folder)
