"""The production gateway: who may send, what comes out, what survives, and its metrics in a real Prometheus."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from sealtrace.telemetry import Metrics
from sealtrace.telemetry.metrics import OBSERVED

from .backend import Backend
from .hostile import Hostile
from .servers import CONFIG, Gateway, binary, free, running
from .test_collector import Recorded


@pytest.fixture
def backend(certificates: Path) -> Iterator[Backend]:
    """A running backend."""
    with Backend(free(), "a-backend-token").run(certificates) as running_backend:
        yield running_backend


def make(folder: Path, certificates: Path, backend: Backend, remote_write: str = "http://127.0.0.1:1/") -> Gateway:
    """A gateway in front of this backend."""
    binary("otelcol")
    return Gateway(
        folder,
        backend=backend.address,
        backend_ca=certificates / "ca.pem",
        remote_write=remote_write,
        certificates=certificates,
    )


def credentials(certificates: Path, who: str | None) -> grpc.ChannelCredentials:
    """TLS with this client certificate, or none."""
    own = (None, None)
    if who is not None:
        own = ((certificates / f"{who}.key").read_bytes(), (certificates / f"{who}.pem").read_bytes())
    return grpc.ssl_channel_credentials((certificates / "ca.pem").read_bytes(), *own)


def send(gateway: Gateway, certificates: Path, hostile: Hostile, *, who: str | None = "client", token: str) -> str:
    """Send a request; the name of the status it was answered with."""
    with grpc.secure_channel(gateway.grpc, credentials(certificates, who)) as channel:
        try:
            TraceServiceStub(channel).Export(
                hostile.request, timeout=20, metadata=(("authorization", f"Bearer {token}"),)
            )
        except grpc.RpcError as error:
            return error.code().name  # type: ignore[attr-defined]
    return "OK"


def test_who_may_send(tmp_path: Path, certificates: Path, backend: Backend, eventually: Callable[..., Any]) -> None:
    """A client needs a certificate of the CA and a token of the list; only then does anything come out, scrubbed."""
    with make(tmp_path, certificates, backend).run() as gateway:
        good, bad = Hostile(), Hostile()
        assert send(gateway, certificates, bad, token="a-wrong-token") == "UNAUTHENTICATED"
        assert send(gateway, certificates, bad, who=None, token=gateway.token) == "UNAVAILABLE"
        assert send(gateway, certificates, bad, who="stranger", token=gateway.token) == "UNAVAILABLE"
        assert send(gateway, certificates, good, token=gateway.token) == "OK"
        eventually(lambda: good.trace_id in backend.trace_ids)
    assert backend.trace_ids == {good.trace_id}
    assert [good.found_in(raw) for raw in backend.raw] == [[]]


def test_the_queue_survives_a_restart(tmp_path: Path, certificates: Path, eventually: Callable[..., Any]) -> None:
    """Spans taken while the backend is down reach it after the gateway was restarted."""
    backend, hostile = Backend(free(), "a-backend-token"), Hostile()
    gateway = make(tmp_path, certificates, backend)
    with gateway.run():
        assert send(gateway, certificates, hostile, token=gateway.token) == "OK"
    assert backend.raw == []
    with backend.run(certificates), gateway.run():
        eventually(lambda: hostile.trace_id in backend.trace_ids)


def test_sampling_keeps_what_went_wrong(
    tmp_path: Path, certificates: Path, backend: Backend, eventually: Callable[..., Any]
) -> None:
    """With sampling on, every failed run and every tripped guardrail is kept, and of the others only a share."""
    gateway = make(tmp_path, certificates, backend)
    gateway.configs = ["gateway.yaml", "sampling.yaml"]
    gateway.env["SAMPLING_WAIT"] = "2s"
    failed, tripped, fine = [Hostile() for _ in range(5)], [Hostile() for _ in range(5)], [Hostile() for _ in range(40)]
    for hostile in (*tripped, *fine):
        span = hostile.request.resource_spans[0].scope_spans[0].spans[0]
        span.status.code = 0
        for item in span.attributes:
            if item.key == "sealtrace.guardrail.tripped":
                item.value.bool_value = hostile in tripped
    with gateway.run():
        for hostile in (*failed, *tripped, *fine):
            assert send(gateway, certificates, hostile, token=gateway.token) == "OK"
        wanted = {hostile.trace_id for hostile in (*failed, *tripped)}
        eventually(lambda: wanted <= backend.trace_ids, seconds=40)
    assert len(backend.trace_ids - wanted) < 30


class Prometheus:
    """Debian's Prometheus, receiving by remote write."""

    def __init__(self, folder: Path) -> None:
        self.address = free()
        self._folder = folder
        self.remote_write = f"http://{self.address}/api/v1/write"

    def run(self) -> Any:
        """Until the block ends."""
        (self._folder / "prometheus.yaml").write_text("global: {scrape_interval: 1h}\n")
        command = [
            str(binary("prometheus")),
            f"--config.file={self._folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--web.enable-remote-write-receiver",
        ]
        return running(command, {}, f"http://{self.address}/-/ready", self._folder / "prometheus.log")

    def query(self, promql: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of what an instant query gives."""
        url = f"http://{self.address}/api/v1/query?{urllib.parse.urlencode({'query': promql})}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            found = json.load(answer)["data"]["result"]
        return [(item["metric"], float(item["value"][1])) for item in found]


def dashboard_queries() -> list[str]:
    """Every PromQL query of the shipped dashboard, with its variables filled in."""
    dashboard = json.loads((CONFIG / "grafana/dashboard.json").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ()) if "expr" in target]
    return [query.replace("$__rate_interval", "5m").replace("$service", ".*") for query in found]


def test_metrics_reach_prometheus(
    tmp_path: Path, certificates: Path, backend: Backend, eventually: Callable[..., Any]
) -> None:
    """Runs, tokens, durations and our own metrics arrive, and every query of the shipped dashboard finds something.

    Tokens are those that the models reported, counted once; other metrics of the application stay out.
    """
    prometheus = Prometheus(tmp_path)
    with prometheus.run(), make(tmp_path, certificates, backend, prometheus.remote_write).run() as gateway:
        headers = {"authorization": f"Bearer {gateway.token}"}
        secure = {"endpoint": f"https://{gateway.grpc}", "credentials": credentials(certificates, "client")}
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(**secure, headers=headers), 1000)
        meter = MeterProvider([reader], resource=Resource.create({"service.name": "support"}), shutdown_on_exit=False)
        own = Metrics(meter)
        own.watch({name: lambda: 1 for name in OBSERVED})
        meter.get_meter("app").create_counter("customer.secret").add(1, {"name": "content"})

        def load(number: int) -> None:
            own.redacted(0.002, failed=True)
            own.stored(0.1, 1000, None)
            own.stored(0.1, 1000, "VaultDenied")
            meter.force_flush()
            exporter = OTLPSpanExporter(**secure, headers=headers)
            Recorded(gateway, exporter, (tmp_path / f"vault{number}").as_uri())

        load(1)
        tokens = "sum(sealtrace_tokens_input_total)"
        eventually(lambda: prometheus.query(tokens) and prometheus.query("sealtrace_span_calls_total"), seconds=60)
        assert prometheus.query(tokens) == [({}, 188 + 412 + 547 + 602)]
        assert prometheus.query("sum(sealtrace_tokens_output_total)") == [({}, 140)]
        (runs,) = prometheus.query("sealtrace_runs_total")
        assert (runs[0]["sealtrace_run_status"], runs[0]["service_name"], runs[1]) == ("ok", "support", 1)
        kinds = {labels["sealtrace_span_kind"] for labels, _ in prometheus.query("sealtrace_span_calls_total")}
        assert {"trace", "agent", "model", "tool", "handoff", "guardrail"} <= kinds

        load(2)
        eventually(lambda: not [query for query in dashboard_queries() if not prometheus.query(query)], seconds=90)
        assert prometheus.query(tokens) == [({}, 2 * (188 + 412 + 547 + 602))]
        assert prometheus.query('{__name__=~"customer.*"}') == []
        meter.shutdown()
