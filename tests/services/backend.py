"""An OTLP backend that wants TLS and a token, and keeps what it gets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


class Backend(TraceServiceServicer):
    """What it got, in the order it came.

    Attributes:
        address: Where it listens.
        token: What it wants as bearer token.
        raw: Requests as bytes.
    """

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token
        self.raw: list[bytes] = []

    def Export(self, request: ExportTraceServiceRequest, context: Any) -> ExportTraceServiceResponse:
        """Keep a request."""
        if ("authorization", f"Bearer {self.token}") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
        self.raw.append(request.SerializeToString())
        return ExportTraceServiceResponse()

    @property
    def trace_ids(self) -> set[str]:
        """Ids of the traces it has spans of."""
        return {
            span.trace_id.hex()
            for raw in self.raw
            for resource in ExportTraceServiceRequest.FromString(raw).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }

    @contextlib.contextmanager
    def run(self, certificates: Path) -> Iterator[Backend]:
        """Until the block ends; the same backend can be run again."""
        server = grpc.server(futures.ThreadPoolExecutor(2))
        add_TraceServiceServicer_to_server(self, server)
        pair = ((certificates / "server.key").read_bytes(), (certificates / "server.pem").read_bytes())
        server.add_secure_port(self.address, grpc.ssl_server_credentials([pair]))
        server.start()
        try:
            yield self
        finally:
            server.stop(None).wait()
