"""A collector of traces: it receives spans by OTLP over HTTP, as those of others do."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status


@dataclass(frozen=True, slots=True)
class Received:
    """A span as it arrived; ids in hexadecimal digits, `parent` empty for a root."""

    service: str
    trace: str
    id: str
    parent: str
    name: str
    began: int
    ended: int
    fields: Mapping[str, str | int]
    failed: bool


@dataclass(slots=True)
class Collector:
    """What has arrived. `status` is that of its answers; None: it never answers."""

    url: str = ""
    status: int | None = 200
    spans: list[Received] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def of(self, trace: str) -> list[Received]:
        """The spans of a trace."""
        return [span for span in self.spans if span.trace == trace]

    async def take(self, request: web.Request) -> web.StreamResponse:
        """Take a request."""
        body = await request.read()
        self.bodies.append(body)
        self.paths.append(request.path)
        if self.status is None:
            await asyncio.Event().wait()
        if self.status != 200:
            return web.Response(status=self.status or 503)
        sent = ExportTraceServiceRequest.FromString(body)
        self.spans += [
            Received(
                service=str(_fields(resource.resource.attributes)["service.name"]),
                trace=span.trace_id.hex(),
                id=span.span_id.hex(),
                parent=span.parent_span_id.hex(),
                name=span.name,
                began=span.start_time_unix_nano,
                ended=span.end_time_unix_nano,
                fields=_fields(span.attributes),
                failed=span.status.code == Status.STATUS_CODE_ERROR,
            )
            for resource in sent.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        answer = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=answer, content_type="application/x-protobuf")


def _fields(pairs: Iterable[KeyValue]) -> dict[str, str | int]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> str | int:
    return value.int_value if value.HasField("int_value") else value.string_value


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """A collector on this machine."""
    collector, app = Collector(), web.Application()
    app.router.add_post("/{path:.*}", collector.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield collector
    finally:
        await runner.cleanup()
