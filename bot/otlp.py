"""Spans to a collector, by OTLP over HTTP.

OpenTelemetry's library queues them, sends them from a thread of its own, and drops what a
collector does not take. Its packages are the extra `tracing`.
"""

import logging
import os
import ssl
from collections.abc import Sequence
from datetime import datetime

import requests
import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider, sampling
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)

from bot.program import VERSION
from service.tracing import Side, Span

log = structlog.get_logger()

PATH = "/v1/traces"
QUEUE_MAX = 8_192
"""Spans that wait; of further ones the oldest are dropped."""
SEND_WITHIN_S = 5.0

_KINDS = {
    Side.OWN: SpanKind.INTERNAL,
    Side.INCOMING: SpanKind.SERVER,
    Side.OUTGOING: SpanKind.CLIENT,
}


class _Ids(IdGenerator):
    """Gives the next span the ids that it has."""

    trace = 0
    span = 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span


class _Exporter(OTLPSpanExporter):
    """Says once that the collector takes no spans, and once that it does again."""

    is_taking = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        was_taking, self.is_taking = self.is_taking, result is SpanExportResult.SUCCESS
        if was_taking and not self.is_taking:
            # The collector of traces does not take spans; they are dropped until it does.
            log.warning("traces_dropped", spans=len(spans))
        elif self.is_taking and not was_taking:
            # The collector of traces takes spans again.
            log.info("traces_sent_again", spans=len(spans))
        return result


class Sender:
    """Sends spans to the collector at `url`; implements `tracing.Recorder`."""

    def __init__(self, url: str, instance: str, proxy: str | None) -> None:
        session = requests.Session()
        session.trust_env = False  # which proxy leads there is decided by our own rule
        session.proxies = {} if proxy is None else {"http": proxy, "https": proxy}
        self._exporter = _Exporter(
            f"{url}{PATH}", _authorities(), timeout=SEND_WITHIN_S, session=session
        )
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # one line of ours is enough
        resource = {
            "service.name": "headgate",
            "service.version": VERSION,
            "service.instance.id": instance,
        }
        self._ids = _Ids()
        self._provider = TracerProvider(
            sampling.ALWAYS_ON,
            Resource.create(resource),
            shutdown_on_exit=False,
            id_generator=self._ids,
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter, QUEUE_MAX))
        self._tracer = self._provider.get_tracer("headgate", VERSION)

    def record(self, span: Span) -> None:
        """Queue a span."""
        self._ids.trace, self._ids.span = span.trace, span.id
        within = Context()
        if span.parent:
            of = SpanContext(span.trace, span.parent, True, TraceFlags(TraceFlags.SAMPLED))
            within = trace.set_span_in_context(NonRecordingSpan(of), within)
        fields = {**span.fields, "error.type": span.error} if span.error else span.fields
        began = _nanoseconds(span.began)
        made = self._tracer.start_span(
            span.name, within, _KINDS[span.side], fields, start_time=began
        )
        if span.error:
            made.set_status(Status(StatusCode.ERROR))
        made.end(_nanoseconds(span.ended))

    def close(self) -> None:
        """Send what waits, and end."""
        self._provider.shutdown()

    def give_up(self) -> None:
        """Send nothing more."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _authorities() -> str | None:
    """Return the certification authorities that our other connections trust: a file or a folder."""
    given = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    usual = ssl.get_default_verify_paths()
    return given or usual.cafile or usual.capath


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1_000
