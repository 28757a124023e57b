"""Conflicts between open pull requests: found before anybody queues, told, and gone again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.mergequeue.engine.config import ConflictRadar
from service.mergequeue.operations import radar
from service.mergequeue.operations.radar import Look, Looks
from service.mergequeue.store import conflicts as stored
from service.vocabulary import MergeMethod
from tests.contract.instance import RECEIVERS
from tests.end_to_end.test_messages import heard
from tests.harness.asking import Asker, asker
from tests.harness.receiver import Receiver
from tests.harness.world import World, WorldOptions

LINES = "".join(f"{n}\n" for n in range(1, 10))


@pytest.fixture
def world_options() -> WorldOptions:
    """Git builds from the first build on."""
    return WorldOptions(settings={**RECEIVERS, "build_method": "git"})


async def watched(world: World, **settings: Any) -> Asker:
    """A queue with its mirror whose radar looks, and an admin."""
    await world.act("push", by="alice", branch="main", files={"t": LINES}, bypass=True)
    await world.make_queue(conflict_radar=ConflictRadar.ON, **settings)
    await world.settle()
    return await asker(world)


async def edit(world: World, line: int, text: str, **more: Any) -> int:
    """A pull request from a branch of its own that changes one line of a common file."""
    start = {"from": world.repository.git.branch("main")}
    files = {"t": LINES.replace(f"{line}\n", f"{text}\n")}
    return await world.open(files=files, head=text, **{**start, **more})


async def move(world: World, head: str, files: dict[str, str]) -> None:
    """Push to the branch of a pull request."""
    await world.act("push", branch=head, files=files)


async def look(world: World) -> None:
    """Let the sweep run, once the world is calm."""
    await world.settle()
    await radar.look_everywhere(world.runtime)


async def look_anew(world: World) -> None:
    """The same, as if the time for it had come."""
    await world.settle()
    for queue in world.runtime.memory.of(Looks).by_queue.values():
        queue.at = None
    await radar.look_everywhere(world.runtime)


async def conflicts(admin: Asker, number: int | None = None) -> dict[str, Any]:
    """What the endpoint answers."""
    return await admin.done("getConflicts", number)


async def told(world: World, receiver: Receiver) -> list[tuple[str, list[int]]]:
    """Messages so far: the event and both pull requests, in order; then they are forgotten."""
    await world.settle()
    rows = [got.json for got in receiver.got]
    receiver.got.clear()
    return [(row["type"], [one["number"] for one in row["pull_requests"]]) for row in rows]


async def test_two_that_nobody_queued_are_found_and_told_of_once(world: World) -> None:
    admin = await watched(world)
    async with heard(world, "conflict.*") as receiver:
        one, two, far = [await edit(world, *each) for each in ((1, "a"), (1, "b"), (9, "c"))]
        await look(world)
        found = await conflicts(admin)
        pairs = [(each["prNumbers"], each["paths"]) for each in found["pairs"]]
        assert pairs == [([one, two], ["t"])]
        assert found["orders"][0]["text"] == f"Land #{one} first, then rebase #{two}: 1 rebase."
        assert (found["isOn"], found["isBlind"], found["notCompared"]) == (True, False, 0)
        assert await conflicts(admin, far) == {**found, "pairs": [], "orders": []}
        assert await conflicts(admin, two) == found
        await world.settle()
        (got,) = receiver.got
        assert got.json["advice"] == found["orders"][0]["text"]
        assert got.json["rebases"] == [two]
        assert [each["author"] for each in got.json["pull_requests"]] == ["bob", "bob"]
        assert await told(world, receiver) == [("conflict.foreseen", [one, two])]
        await look(world)
        await move(world, "b", {"u": "u\n"})
        await look(world)
        assert await told(world, receiver) == []
        assert len((await conflicts(admin))["pairs"]) == 1
        await move(world, "b", {"t": LINES})
        await look(world)
        assert await told(world, receiver) == [("conflict.gone", [one, two])]
        assert (await conflicts(admin))["pairs"] == []
    assert world.comment_on(one) == world.comment_on(two) == ""


async def test_a_pair_ends_when_one_lands_or_is_closed(world: World) -> None:
    admin = await watched(world)
    one, two, three = [await edit(world, 1, text) for text in "abc"]
    await look(world)
    assert len((await conflicts(admin))["pairs"]) == 3
    order = (await conflicts(admin))["orders"]
    assert [(each["first"], each["rebased"]) for each in order] == [([one], [two, three])]
    await world.act("close", number=three)
    await look(world)
    assert [each["prNumbers"] for each in (await conflicts(admin))["pairs"]] == [[one, two]]
    await world.comment("/merge", on=one)
    await look(world)
    assert (await conflicts(admin))["pairs"] == []


async def test_explain_and_pages_name_the_other_one_that_nobody_queued(world: World) -> None:
    admin = await watched(world)
    one, two = await edit(world, 1, "a"), await edit(world, 1, "b", draft=True)
    await world.comment("/merge", on=two)
    await look(world)
    explained = await admin.done("explainPullRequest", two)
    text = f"Land #{one} first, then rebase #{two}: 1 rebase."
    assert explained["conflicts"] == [{"prNumber": one, "paths": ["t"], "text": text}]
    shown = await admin.headgate("explain", str(two))
    assert f"Conflicts with #{one}" in shown


async def test_what_the_budget_leaves_is_said_and_looked_at_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = await watched(world)
    monkeypatch.setattr(radar, "PAIRS_MAX", 0)
    for text in "abc":
        await edit(world, 1, text)
    await look(world)
    assert (await conflicts(admin))["notCompared"] == 3
    monkeypatch.setattr(radar, "PAIRS_MAX", 2)
    await radar.look_everywhere(world.runtime)
    assert (await conflicts(admin))["notCompared"] == 1
    await radar.look_everywhere(world.runtime)
    found = await conflicts(admin)
    assert (len(found["pairs"]), found["notCompared"]) == (3, 0)


def test_an_hour_has_a_budget_of_its_own() -> None:
    state, now = Look(), datetime(2026, 1, 1, tzinfo=UTC)
    assert state.budget_s(now) == radar.LOOK_CPU_S
    state.spent.append((now, radar.HOUR_CPU_S - 1))
    assert state.budget_s(now + timedelta(minutes=59)) == 1
    assert state.budget_s(now + timedelta(hours=1)) == radar.LOOK_CPU_S


async def test_a_radar_that_is_off_asks_for_nothing_and_forgets(world: World) -> None:
    admin = await watched(world)
    await edit(world, 1, "a"), await edit(world, 1, "b")
    await look(world)
    assert len((await conflicts(admin))["pairs"]) == 1
    await admin.done("updateQueue", conflictRadar="OFF")
    assert (await conflicts(admin))["pairs"] == []
    world.runtime.memory.of(Looks).by_queue.clear()
    before = len(world.sandbox.world.calls)
    await radar.look_everywhere(world.runtime)
    assert len(world.sandbox.world.calls) == before
    await admin.done("updateQueue", conflictRadar="ON")
    assert (await conflicts(admin))["pairs"] == []


async def test_a_radar_that_is_on_again_finds_what_it_had_found(world: World) -> None:
    admin = await watched(world)
    await edit(world, 1, "a"), await edit(world, 1, "b")
    await look(world)
    for mode in ("OFF", "ON"):
        await admin.done("updateQueue", conflictRadar=mode)
        await look_anew(world)
    assert len((await conflicts(admin))["pairs"]) == 1


async def test_other_rules_end_pairs_and_bring_them_back(world: World) -> None:
    admin = await watched(world, merge_method=MergeMethod.MERGE_COMMIT)
    start: dict[str, Any] = {"from": world.repository.git.branch("main")}
    for name in "ab":
        await world.open(files={"t": f"{LINES}{name}\n"}, head=name, **start)
    await look(world)
    for rules, count in (([{"paths": ["t"], "rule": "UNION"}], 0), ([], 1)):
        await admin.done("updateQueue", conflictRules=rules)
        await look_anew(world)
        assert len((await conflicts(admin))["pairs"]) == count


async def test_pairs_beyond_the_bound_are_neither_kept_nor_told_of_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = await watched(world)
    monkeypatch.setattr(stored, "PAIRS_MAX", 2)
    async with heard(world, "conflict.*") as receiver:
        for text in "abc":
            await edit(world, 1, text)
        await look(world)
        assert [name for name, _ in await told(world, receiver)] == ["conflict.foreseen"] * 2
        world.runtime.memory.of(Looks).by_queue.clear()
        await look(world)
        assert await told(world, receiver) == []
        assert len((await conflicts(admin))["pairs"]) == 2


async def test_without_time_left_in_the_hour_nothing_is_listed(world: World) -> None:
    await watched(world)
    await look(world)
    queue = next(iter(world.runtime.memory.of(Looks).by_queue.values()))
    queue.left = 1
    queue.spent.append((world.clock.now(), radar.HOUR_CPU_S))
    before = len(world.sandbox.world.calls)
    await radar.look_everywhere(world.runtime)
    assert len(world.sandbox.world.calls) == before
