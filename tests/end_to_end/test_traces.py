"""A landing is one trace at a collector, which gets it by OTLP over HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.harness import gates
from tests.harness.collector import Collector, Received, collecting
from tests.harness.world import World, WorldOptions, living


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    async with collecting() as found:
        yield found


async def spans_of_a_landing(tmp_path: Path, collector: Collector) -> tuple[str, list[Received]]:
    """The id of a submission that landed, and the spans of its trace."""
    options = WorldOptions(ci=gates.CI, settings={"traces_url": collector.url})
    async with living(tmp_path, options) as world:
        await world.make_queue()
        number = await world.open()
        await world.settle()
        await world.comment("/merge Tell nobody this word", on=number)
        await world.comment("/merge", on=number)
        await gates.ends(world, number)
        await world.settle()
        assert await world.merged() == [number]
        entry = (await world.entry(number)).id
    return entry, collector.of(UUID(entry).hex)


async def test_a_landing_is_one_trace_from_the_webhook_to_the_merge(
    tmp_path: Path, collector: Collector
) -> None:
    _, spans = await spans_of_a_landing(tmp_path, collector)
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
    for s in sorted(spans, key=lambda s: s.began):
        print(
            "ZZ",
            s.began // 10**6 % 10**7,
            (s.ended - s.began) // 10**6,
            s.id[:4],
            s.parent[:4],
            s.name,
            dict(s.fields),
        )
    assert 0
