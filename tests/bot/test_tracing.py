"""Spans reach a collector through the network that other requests use, and hold nothing up."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from bot import otlp, tracing
from bot.uploader.proxies import Proxies
from service.errors import StartRefused
from service.tracing import Side, Span
from tests.harness.collector import Collector, collecting
from tests.harness.proxy import authority, proxying, tls_before

NAME, PORT = "collector.corp.example", 4318
BEGAN = datetime(2026, 3, 2, 14, tzinfo=UTC)
SPAN = Span(7, 9, 0, "submission", Side.OWN, BEGAN, BEGAN + timedelta(seconds=2), {"a": 1})


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    async with collecting() as found:
        yield found


async def sent(sender: otlp.Sender, *spans: Span) -> None:
    """Record spans, and wait until they are sent."""
    for span in spans:
        sender.record(span)
    await asyncio.to_thread(sender.close)


async def test_a_span_arrives_as_it_was_recorded(collector: Collector) -> None:
    child = Span(7, 11, 9, "call", Side.OUTGOING, BEGAN, BEGAN, {}, "Unavailable")
    await sent(otlp.Sender(collector.url, "one", None), SPAN, child)
    root, inner = sorted(collector.spans, key=lambda span: span.id)
    assert (root.trace, root.id, root.parent) == (f"{7:032x}", f"{9:016x}", "")
    assert (inner.trace, inner.id, inner.parent) == (f"{7:032x}", f"{11:016x}", f"{9:016x}")
    assert (root.ended - root.began, root.began) == (2 * 10**9, int(BEGAN.timestamp()) * 10**9)
    assert (root.fields, root.failed) == ({"a": 1}, False)
    assert (inner.fields, inner.failed) == ({"error.type": "Unavailable"}, True)


async def test_the_proxy_and_the_authority_of_other_requests_lead_to_the_collector(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corporate = authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(corporate.file))
    monkeypatch.setenv("NO_PROXY", "*")  # the library would read it
    own = urlsplit(collector.url).port or 0
    async with (
        tls_before(own, corporate.server(NAME)) as port,
        proxying({f"{NAME}:{PORT}": port}) as proxy,
    ):
        await sent(otlp.Sender(f"https://{NAME}:{PORT}", "one", proxy.url), SPAN)
    assert proxy.targets == [f"{NAME}:{PORT}"]
    assert [span.name for span in collector.spans] == ["submission"]


async def test_a_certificate_of_another_authority_gets_no_span(
    collector: Collector, tmp_path: Path
) -> None:
    own = urlsplit(collector.url).port or 0
    async with (
        tls_before(own, authority(tmp_path).server(NAME)) as port,
        proxying({f"{NAME}:{PORT}": port}) as proxy,
    ):
        await sent(otlp.Sender(f"https://{NAME}:{PORT}", "one", proxy.url), SPAN)
    assert proxy.targets
    assert collector.bodies == []


async def test_spans_that_nobody_takes_are_dropped_and_the_end_waits_for_none(
    collector: Collector,
) -> None:
    collector.status = None
    async with tracing.opened(collector.url, "one", Proxies(), lambda: BEGAN) as traces:
        for number in range(3 * otlp.QUEUE_MAX):
            traces.submission(str(number), "submission", (BEGAN, BEGAN))
        began_s = time.monotonic()
    assert time.monotonic() - began_s < 2 * tracing.STOP_WITHIN_S


async def test_without_a_collector_nothing_is_noted_and_no_package_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "bot.otlp", None)
    async with tracing.opened(None, "one", Proxies(), lambda: BEGAN) as traces:
        assert not traces.are_on


async def test_without_the_extra_packages_the_setting_refuses_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "bot.otlp")
    monkeypatch.delattr("bot.otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(StartRefused, match=r"Install `headgate\[tracing\]`, or remove the setting"):
        async with tracing.opened("http://collector:4318", "one", Proxies(), lambda: BEGAN):
            pass


async def test_a_collector_that_comes_and_goes_is_told_once_each_time(
    collector: Collector,
) -> None:
    sender = otlp.Sender(collector.url, "one", None)
    with capture_logs() as said:
        for collector.status in (200, 400, 400, 200, 200):
            sender.record(SPAN)
            await asyncio.to_thread(sender._provider.force_flush)
    await asyncio.to_thread(sender.close)
    assert [line["event"] for line in said] == ["traces_dropped", "traces_sent_again"]
