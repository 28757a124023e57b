"""Labels that show the state of a pull request in GitHub's own lists."""

from service.mergequeue.engine.states import QueueState
from tests.harness.world import World


def labels_of(world: World, number: int) -> list[str]:
    return world.repository.issues[number].labels


def changes_of(world: World, number: int) -> list[str]:
    """The labels that were added and removed, in order, as `+name` and `-name`."""
    tail = f"/issues/{number}/labels"
    calls = [one for one in world.sandbox.world.calls if tail in str(one["path"])]
    added = [f"+{name}" for one in calls for name in (one["body"] or {}).get("labels", [])]
    removed = [f"-{str(one['path']).split('/')[-1]}" for one in calls if one["method"] == "DELETE"]
    assert len(added) + len(removed) == len(calls)
    return [*added, *removed]


async def test_the_label_follows_the_state_and_goes_with_the_landing(world: World):
    await world.make_queue(state_labels_enabled=True)
    number = await world.open()
    await world.act("label", by="alice", number=number, label="bug")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]
    assert labels_of(world, number) == ["bug"]
    changes = changes_of(world, number)
    assert "+headgate:testing" in changes
    assert "-headgate:testing" in changes


async def test_a_failure_leaves_its_label_until_the_next_submission(world: World):
    await world.make_queue(state_labels_enabled=True)
    first = await world.open(files={"a.txt": "x\n"})
    number = await world.open(files={"b.txt": "x\n"})
    await world.settle()
    for each in (first, number):
        await world.comment("/merge", on=each)
    await world.settle()
    assert await world.state(number) == "FAILED"
    assert labels_of(world, number) == ["headgate:failed"]
    await world.act("draft", by="alice", number=number)
    await world.comment("/merge --again", on=number)
    await world.settle()
    assert labels_of(world, number) == ["headgate:waiting"]
    await world.comment("/merge cancel", on=number)
    await world.settle()
    assert labels_of(world, number) == []


async def test_the_end_in_one_queue_leaves_the_label_of_another(world: World) -> None:
    """The notices of the first queue are tried again when the next one has the pull request."""
    await world.act("push", by="alice", branch="release", files={"r.txt": "r\n"}, bypass=True)
    for branch in ("main", "release"):
        await world.make_queue(
            branch=branch,
            state=QueueState.PAUSED,
            required_statuses=("unit",),
            state_labels_enabled=True,
        )
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    (before,) = labels_of(world, number)
    check = {"method": "PATCH", "path": "*/check-runs/*", "times": 4}
    await world.fault(check, "fail_before", status=502)
    await world.act("retarget", by="bob", number=number, base="release")
    await world.comment("/merge", on=number)
    await world.settle()
    assert number in (await world.value("release")).entries
    assert labels_of(world, number) == [before]


async def test_a_queue_without_the_setting_touches_no_label(world: World):
    await world.make_queue()
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]
    assert changes_of(world, number) == []
