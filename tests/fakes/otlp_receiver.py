"""An OTLP/HTTP receiver of OpenTelemetry traces, with decoded protobuf."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class OtlpReceiver:
    """Received requests."""

    endpoint: str
    bodies: list[bytes] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        """Decoded requests."""
        return [ExportTraceServiceRequest.FromString(body) for body in list(self.bodies)]

    @property
    def spans(self) -> list[Span]:
        """All spans in order of arrival."""
        return [
            span
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]

    @property
    def services(self) -> set[str]:
        """Service names of the spans."""
        return {
            attribute.value.string_value
            for request in self.requests
            for of_resource in request.resource_spans
            for attribute in of_resource.resource.attributes
            if attribute.key == "service.name"
        }


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    """Yield a receiver on a free loopback port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.paths.add(self.path)
            reply = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            """Do not log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = OtlpReceiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def attributes(span: Span) -> dict[str, str | int]:
    """Return the attributes of a span."""
    values = {one.key: one.value for one in span.attributes}
    return {
        key: value.string_value if value.HasField("string_value") else value.int_value
        for key, value in values.items()
    }
