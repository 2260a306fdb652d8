# ruff: noqa: INP001 - a script beside what it writes
"""Writes `dashboard.json`: run it again after a change, and commit both.

Needs the package `grafana-foundation-sdk`. The queries are those of the metrics that `gateway.yaml`
makes from spans, and of sealtrace's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, table, tempo, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef

_PROMETHEUS: Final = DataSourceRef(type_val="prometheus", uid="prometheus")
_TEMPO: Final = DataSourceRef(type_val="tempo", uid="tempo")
_SERVICE: Final = 'service_name=~"$service"'


def _rate(metric: str, by: str = "", only: str = "", *, scale: str = "") -> str:
    """The rate of a counter, summed by these labels."""
    grouped = f"sum by ({by})" if by else "sum"
    selected = f"{_SERVICE}, {only}" if only else _SERVICE
    return f"{scale}{grouped} (rate({metric}{{{selected}}}[$__rate_interval]))"


def _p95(metric: str, by: str = "", only: str = "") -> str:
    """The 95th percentile of a histogram of seconds, by these labels."""
    return f"histogram_quantile(0.95, {_rate(f'{metric}_bucket', f'le, {by}' if by else 'le', only)})"


def _spans(kind: str) -> str:
    return f'sealtrace_span_kind="{kind}"'


_CALLS: Final = "sealtrace_span_calls_total"
_DURATION: Final = "sealtrace_span_duration_seconds"
_A_MINUTE: Final = "60 * "

ROWS: Final[dict[str, list[tuple[str, str, str, str]]]] = {
    "Runs": [
        (
            "Runs per minute, by how they ended",
            _rate("sealtrace_runs_total", "sealtrace_run_status", scale=_A_MINUTE),
            "{{sealtrace_run_status}}",
            "short",
        ),
        ("Run duration, 95th percentile", _p95(_DURATION, only=_spans("trace")), "p95", "s"),
        (
            "Guardrails per minute, by whether they tripped",
            _rate(_CALLS, "sealtrace_guardrail_tripped", _spans("guardrail"), scale=_A_MINUTE),
            "tripped: {{sealtrace_guardrail_tripped}}",
            "short",
        ),
    ],
    "Models": [
        (
            "Tokens per second, in",
            _rate("sealtrace_tokens_input_total", "gen_ai_request_model"),
            "{{gen_ai_request_model}}",
            "short",
        ),
        (
            "Tokens per second, out",
            _rate("sealtrace_tokens_output_total", "gen_ai_request_model"),
            "{{gen_ai_request_model}}",
            "short",
        ),
        (
            "Tokens per second, in, by agent",
            _rate("sealtrace_tokens_input_total", "gen_ai_agent_name"),
            "{{gen_ai_agent_name}}",
            "short",
        ),
        (
            "Call duration, 95th percentile",
            _p95(_DURATION, "gen_ai_request_model", _spans("model")),
            "{{gen_ai_request_model}}",
            "s",
        ),
    ],
    "Tools": [
        (
            "Calls per minute",
            _rate(_CALLS, "gen_ai_tool_name", _spans("tool"), scale=_A_MINUTE),
            "{{gen_ai_tool_name}}",
            "short",
        ),
        (
            "Failures per minute",
            _rate(_CALLS, "gen_ai_tool_name, error_type", f'{_spans("tool")}, error_type!=""', scale=_A_MINUTE),
            "{{gen_ai_tool_name}}: {{error_type}}",
            "short",
        ),
        (
            "Duration, 95th percentile",
            _p95(_DURATION, "gen_ai_tool_name", _spans("tool")),
            "{{gen_ai_tool_name}}",
            "s",
        ),
    ],
    "Recording": [
        ("Payloads dropped per second", _rate("sealtrace_payloads_dropped_total"), "dropped", "short"),
        ("Redactions per second", _rate("sealtrace_redaction_duration_seconds_count"), "redactions", "short"),
        ("Failed redactions per second", _rate("sealtrace_redaction_failures_total"), "failed", "short"),
        (
            "Waiting in memory",
            f"sum(sealtrace_queue_bytes{{{_SERVICE}}}) + sum(sealtrace_spool_bytes{{{_SERVICE}}})",
            "bytes",
            "bytes",
        ),
        ("Vault uploads, 95th percentile", _p95("sealtrace_vault_upload_duration_seconds"), "p95", "s"),
        (
            "Vault uploads per second, by error",
            _rate("sealtrace_vault_upload_duration_seconds_count", "error_type"),
            "{{error_type}}",
            "short",
        ),
    ],
}
"""Row: panel title, query, legend, unit."""

FAILED_SHARE: Final = (
    "(" + _rate("sealtrace_runs_total", only='sealtrace_run_status="error"') + " or vector(0))"
    " / " + _rate("sealtrace_runs_total")
)
RECENT_RUNS: Final = (
    '{ span.sealtrace.span.kind = "trace" && resource.service.name =~ "$service" } | select('
    "span.sealtrace.workflow.name, span.sealtrace.run.status, span.sealtrace.run.id, span.sealtrace.replay.url)"
)


def _panel(title: str, query: str, legend: str, unit: str) -> timeseries.Panel:
    return (
        timeseries.Panel()
        .title(title)
        .datasource(_PROMETHEUS)
        .unit(unit)
        .min(0)
        .height(7)
        .span(8)
        .with_target(prometheus.Dataquery().expr(query).legend_format(legend))
    )


def _failed_share() -> stat.Panel:
    return (
        stat.Panel()
        .title("Share of runs that failed")
        .datasource(_PROMETHEUS)
        .unit("percentunit")
        .height(7)
        .span(8)
        .with_target(prometheus.Dataquery().expr(FAILED_SHARE))
    )


def _runs() -> table.Panel:
    return (
        table.Panel()
        .title("Recent runs")
        .description("sealtrace.replay.url is a link where the setting replay_url is set")
        .datasource(_TEMPO)
        .height(9)
        .span(24)
        .with_target(tempo.TempoQuery().query(RECENT_RUNS).query_type("traceql").limit(50).filters([]))
    )


def build() -> str:
    """The dashboard as JSON."""
    service = (
        dashboard.QueryVariable("service")
        .datasource(_PROMETHEUS)
        .query("label_values(sealtrace_runs_total, service_name)")
        .include_all(include_all=True)
        .all_value(".*")
        .multi(multi=True)
    )
    made: Any = (
        dashboard.Dashboard("Agent runs")
        .uid("sealtrace-runs")
        .tags(["sealtrace", "gen_ai"])
        .refresh("1m")
        .time("now-6h", "now")
        .readonly()
        .with_variable(service)
    )
    for row, panels in ROWS.items():
        made = made.with_row(dashboard.Row(row))
        if row == "Runs":
            made = made.with_panel(_failed_share())
        for panel in panels:
            made = made.with_panel(_panel(*panel))
        if row == "Runs":
            made = made.with_panel(_runs())
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("dashboard.json").write_text(build(), encoding="utf-8")
