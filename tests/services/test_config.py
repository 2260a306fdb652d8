"""The shipped configurations: valid, and in step with the allow-list."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sealtrace.telemetry import ATTRIBUTES
from sealtrace.telemetry.reference import allowed_keys

from .servers import CONFIG, Collector, Gateway, binary

RESOURCE = {
    "service.name",
    "service.namespace",
    "service.version",
    "service.instance.id",
    "deployment.environment.name",
    "telemetry.sdk.name",
    "telemetry.sdk.language",
    "telemetry.sdk.version",
}
NEIGHBOURS = {
    "db.namespace",
    "db.operation.name",
    "db.system.name",
    "http.request.method",
    "http.response.status_code",
    "http.route",
    "server.address",
    "server.port",
}


def scrub() -> dict[str, Any]:
    """The processors of scrub.yaml."""
    return yaml.safe_load((CONFIG / "scrub.yaml").read_text())["processors"]


def test_allowed_keys_are_ours() -> None:
    """The collector lets through exactly our allow-list, the resource's keys and the neighbours' named ones."""
    assert set(scrub()["redaction"]["allowed_keys"]) == set(ATTRIBUTES) | RESOURCE | NEIGHBOURS


def test_generated_part_is_current() -> None:
    """What stands between the marks in scrub.yaml is what the generator writes."""
    text = (CONFIG / "scrub.yaml").read_text()
    between = text.partition("--allowed-keys`\n")[2].partition("      # end sealtrace")[0]
    assert between == allowed_keys()


def test_every_step_fails_closed() -> None:
    """No processor that scrubs has the error mode that lets a batch through on errors."""
    modes = {name: body.get("error_mode") for name, body in scrub().items() if name != "redaction"}
    assert set(modes.values()) == {"propagate"}
    gateway = yaml.safe_load((CONFIG / "gateway.yaml").read_text())
    assert gateway["processors"]["filter/metrics"]["error_mode"] == "propagate"


@pytest.mark.parametrize("name", ["dev.yaml", "gateway.yaml"])
def test_every_way_out_is_scrubbed(name: str) -> None:
    """Each pipeline that receives spans runs all four steps, in order, right after the memory limiter."""
    pipelines = yaml.safe_load((CONFIG / name).read_text())["service"]["pipelines"]
    receiving = [body for key, body in pipelines.items() if key.startswith("traces") and "otlp" in body["receivers"]]
    assert receiving
    for body in receiving:
        assert body["processors"] == ["memory_limiter", *scrub()]
    assert not [key for key in pipelines if key.startswith("logs")]


def _validate(collector: Collector, folder: Path) -> subprocess.CompletedProcess[str]:
    command = collector.command("validate")
    return subprocess.run(
        command, env={"HOME": str(folder), **collector.env}, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("configs", [["dev.yaml"], ["gateway.yaml"], ["gateway.yaml", "sampling.yaml"]], ids="+".join)
def test_valid(tmp_path: Path, certificates: Path, configs: list[str]) -> None:
    """The collector itself accepts the configuration, OTTL statements included."""
    binary("otelcol")
    collector = (
        Collector(tmp_path)
        if configs == ["dev.yaml"]
        else Gateway(
            tmp_path,
            backend="127.0.0.1:1",
            backend_ca=certificates / "ca.pem",
            remote_write="http://127.0.0.1:1/",
            certificates=certificates,
        )
    )
    collector.configs = configs
    done = _validate(collector, tmp_path)
    assert done.returncode == 0, done.stderr


def test_validation_would_notice(tmp_path: Path) -> None:
    """The check above can fail: a misspelt key and a missing variable are both refused."""
    binary("otelcol")
    collector = Collector(tmp_path)
    bad = tmp_path / "bad.yaml"
    bad.write_text("processors: {redaction: {allowed_keyz: [a]}}\n")
    collector.configs = ["dev.yaml", str(bad)]
    assert "allowed_keyz" in _validate(collector, tmp_path).stderr
    collector.configs = ["gateway.yaml"]
    assert _validate(collector, tmp_path).returncode != 0


def test_jaeger_links_carry_ids_only() -> None:
    """The links in Jaeger's UI have a literal address and, besides, ids and numbers only."""
    patterns = json.loads((CONFIG / "jaeger/config-ui.json").read_text())["linkPatterns"]
    for pattern in patterns:
        fields = {part.partition("}")[0] for part in pattern["url"].split("#{")[1:]}
        assert fields <= {"sealtrace.run.id", "sealtrace.seq", "traceID"}
        assert pattern["url"].startswith("http://127.0.0.1:8765/")


def test_dashboard_is_current() -> None:
    """dashboard.json is what its generator writes."""
    path = CONFIG / "grafana/generate_dashboard.py"
    spec = importlib.util.spec_from_file_location("generate_dashboard", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (CONFIG / "grafana/dashboard.json").read_text() == module.build()


def test_dashboard_uses_the_provisioned_sources() -> None:
    """Every data source that the dashboard names is provisioned."""
    provisioned = {
        item["uid"] for item in yaml.safe_load((CONFIG / "grafana/datasources.yaml").read_text())["datasources"]
    }
    dashboard = json.loads((CONFIG / "grafana/dashboard.json").read_text())
    named = {panel["datasource"]["uid"] for panel in dashboard["panels"] if "datasource" in panel}
    assert named == {"prometheus", "tempo"}
    assert named <= provisioned


def test_grafana_links_carry_ids_only() -> None:
    """Correlations escape their variables and pass on nothing but ids and the event's number."""
    for source in yaml.safe_load((CONFIG / "grafana/datasources.yaml").read_text())["datasources"]:
        for correlation in source.get("correlations", ()):
            url = correlation["config"]["target"]["url"]
            assert "$" not in url.replace("$${", "")
            fields = [part.partition("}")[0] for part in url.split("$${")[1:]]
            assert set(fields) <= {'__span.tags["sealtrace.run.id"]', '__span.tags["sealtrace.seq"]', "traceId"}


@pytest.mark.parametrize("command", [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]])
def test_alert_rules(command: list[str]) -> None:
    """Prometheus's own tool accepts the alert rules, and they fire and stay silent as their tests say."""
    done = subprocess.run(
        [str(binary("promtool")), *command],
        cwd=CONFIG / "prometheus",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
