"""Segments are plain enough for other tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from vault.records import Conversation, local


def test_duckdb_reads_segments_as_they_are(tmp_path: Path) -> None:
    """An ordinary SQL engine counts events and finds a message's text, without us."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    run = Conversation(40)
    run.store(local(tmp_path))
    files = str(tmp_path / "vault" / "content" / "**" / "*.jsonl.gz")
    connection = duckdb.connect()
    columns = "{kind: 'VARCHAR', seq: 'BIGINT', payload: 'JSON', value: 'JSON'}"
    source = f"read_json('{files}', format='newline_delimited', columns={columns})"
    rows = connection.execute(f"select kind, count(*) from {source} group by kind order by kind").fetchall()
    assert dict(rows)["generation"] == dict(rows)["tool_call"] == dict(rows)["tool_result"] == 40
    query = f"select count(*) from {source} where kind = 'msg' and value->>'$.type' = 'function_call_output'"
    assert connection.execute(query).fetchall() == [(40,)]
