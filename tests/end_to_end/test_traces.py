"""A landing is one trace at a collector, which gets it by OTLP over HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from bot.sandbox.app import WEBHOOK_SECRET
from tests.harness import gates
from tests.harness.collector import Collector, collecting
from tests.harness.world import WorldOptions, living

TITLE, WORDS = "A title that people wrote", "Words that people wrote"


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    async with collecting() as found:
        yield found


async def landed(tmp_path: Path, collector: Collector) -> str:
    """Land a pull request in a service that knows the collector; return its submission."""
    options = WorldOptions(ci=gates.CI, settings={"traces_url": collector.url})
    async with living(tmp_path, options) as world:
        await world.make_queue()
        number = await world.open(title=TITLE)
        await world.settle()
        await world.comment(f"/merge\n\n{WORDS}", on=number)
        await gates.ends(world, number)
        await world.settle()
        assert await world.merged() == [number]
        return (await world.entry(number)).id


async def test_a_landing_is_one_trace_from_the_webhook_to_the_merge(
    tmp_path: Path, collector: Collector
) -> None:
    spans = collector.of(UUID(await landed(tmp_path, collector)).hex)
    (root,) = [span for span in spans if not span.parent]
    assert (root.name, root.fields["headgate.state"]) == ("submission", "MERGED")
    assert {span.service for span in spans} == {"headgate"}
    ids = {span.id for span in spans}
    assert len(ids) == len(spans)
    assert all(span.parent in ids for span in spans if span is not root)
    names = {span.name for span in spans}
    assert {"webhook issue_comment", "turn", "effect build", "test run", "effect land"} <= names
    (run,) = [span for span in spans if span.name == "test run"]
    assert (run.parent, run.fields["headgate.run.status"]) == (root.id, "succeeded")
    assert root.began <= run.began < run.ended <= root.ended
    (land,) = [span for span in spans if span.name == "effect land"]
    calls = [span for span in spans if span.parent == land.id and span.name == "POST provider"]
    assert calls
    assert {type(span.fields["http.response.status_code"]) for span in calls} == {int}
    assert not any(span.failed for span in spans)
    assert set(collector.paths) == {"/v1/traces"}


async def test_a_trace_has_no_texts_of_people_and_no_secrets(
    tmp_path: Path, collector: Collector
) -> None:
    await landed(tmp_path, collector)
    sent = b"".join(collector.bodies)
    assert b"/check-runs" in sent
    secrets = (TITLE, WORDS, "Bearer", "ghs_", WEBHOOK_SECRET, "PRIVATE KEY")
    assert [each for each in secrets if each.encode() in sent] == []


async def test_a_failure_is_the_error_of_its_trace(tmp_path: Path, collector: Collector) -> None:
    options = WorldOptions(ci=gates.CI, settings={"traces_url": collector.url})
    async with living(tmp_path, options) as world:
        await world.make_queue()
        number = await world.open()
        await world.settle()
        refused = {"status": 403, "message": "Resource not accessible by integration"}
        await world.fault({"method": "POST", "path": "*/check-runs", "nth": 1}, "refuse", **refused)
        await world.comment("/merge", on=number)
        for _ in range(2):
            await gates.fails(world, number)
        await world.settle()
        entry = (await world.entry(number)).id
    spans = collector.of(UUID(entry).hex)
    errors = {span.name: span.fields["error.type"] for span in spans if span.failed}
    assert errors["submission"] == "required_status_failed"
    assert errors["effect tell"] == "NotPermitted"
    assert "test run" in errors


@pytest.mark.parametrize("status", [503, 400, None])
async def test_a_collector_that_takes_nothing_stops_no_landing_and_no_end(
    tmp_path: Path, collector: Collector, status: int | None
) -> None:
    collector.status = status
    await landed(tmp_path, collector)
    assert collector.bodies
    assert collector.spans == []
