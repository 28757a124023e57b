"""Units that stop half-way: the target is tested, the queue waits, and each text says what is so.

A unit is a batch, or a chain. The judge of each story (tests/harness/tested_trees.py) asks on which
trees CI passed, and not which were planned.
"""

from typing import Any

import pytest

from tests.end_to_end.test_chains import a_chain
from tests.harness.world import REPO, World, WorldOptions

METHODS = ("SQUASH", "REBASE", "MERGE_COMMIT")
ACTS: dict[str, dict[str, Any]] = {
    "closed": {"act": "close"},
    "pushed to": {"act": "push", "files": {"more.txt": "x\n"}},
    "a draft": {"act": "draft"},
}
CI = """\
triggers: {pull_request: true}
checks:
  - name: unit
    seconds: 3
    rules:
      - {exists: [broken.txt], conclusion: failure}
      - {exists: [half.txt, whole.txt], conclusion: success}
      - {exists: [half.txt], branch: "headgate/**", conclusion: failure}
"""
"""A tree with `half.txt` passes on test branches only together with `whole.txt`."""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that fails the half of a change."""
    return WorldOptions(ci=CI)


async def a_unit(world: World, kind: str, *files: dict[str, str], **settings: Any) -> list[int]:
    """Pull requests that one run tests, asked to merge, from the bottom up."""
    size: dict[str, Any] = {}
    if kind == "batch":
        size = {"batch": True, "batching_min_size": len(files)}
    await world.make_queue(**size, **settings)
    if kind == "chain":
        numbers = await a_chain(world, *files)
        await world.comment("/merge", on=numbers[-1])
        return numbers
    numbers = [await world.open(files=content) for content in files]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)
    return numbers


async def disturb(world: World, number: int, how: str) -> None:
    """Let something come between, just before the provider merges this pull request."""
    match = {"method": "PUT", "path": f"*/pulls/{number}/merge"}
    if how == "refused":
        words = "Base branch was modified. Review and try the merge again."
        await world.fault({**match, "times": 11}, "refuse", status=405, message=words)
        return
    act: dict[str, Any] = {"as": "bob", "repo": REPO, "number": number, **ACTS[how]}
    await world.fault({**match, "nth": 1}, "before", act=act)


def hold_reasons(world_value: Any) -> list[str]:
    """Reasons of the holds of a queue."""
    return [hold.reason.value for hold in world_value.holds]


@pytest.mark.parametrize("how", ["closed", "pushed to", "a draft", "refused"])
@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("SQUASH", "batch"),
        pytest.param("SQUASH", "chain", marks=pytest.mark.soak),
        pytest.param("REBASE", "batch", marks=pytest.mark.soak),
        ("REBASE", "chain"),
        ("MERGE_COMMIT", "chain"),
    ],
)
async def test_the_tip_is_tested_when_the_rest_of_a_unit_does_not_follow(
    world: World, method: str, kind: str, how: str
) -> None:
    files = ({"a1.txt": "x\n"}, {"a2.txt": "x\n"})
    first, second = await a_unit(world, kind, *files, merge_method=method)
    await disturb(world, second, how)
    await world.until(lambda: is_held(world))
    assert await world.state(first) == "MERGED"
    await world.until(lambda: is_free(world))
    await world.settle()
    said = world.comment_on(first)
    assert f"It was tested together with `#{second}`" in said
    assert "Proof:" not in said
    assert "so `main` was tested at this commit: it passed" in said or how == "refused"


async def is_held(world: World) -> bool:
    """Whether the queue is held by a tip without a test."""
    return "untested_tip" in hold_reasons(await world.value())


async def is_free(world: World) -> bool:
    """Whether nothing holds the queue."""
    return not (await world.value()).holds


@pytest.mark.parametrize("method", ["SQUASH", "REBASE"])
async def test_a_tip_that_fails_blames_no_pull_request_behind_it(world: World, method: str) -> None:
    first, second = await a_unit(
        world, "batch", {"half.txt": "x\n"}, {"whole.txt": "x\n"}, merge_method=method
    )
    await disturb(world, second, "a draft")
    innocent, other = await world.open(), await world.open()
    await world.comment("/merge", on=innocent)
    await world.comment("/merge", on=other)
    await world.until(lambda: is_held(world))

    async def is_red() -> bool:
        return "base_red" in hold_reasons(await world.value())

    await world.until(is_red)
    (hold,) = (await world.value()).holds
    assert hold.text == (
        f"the target fails unit, since #{first} landed without #{second}; they were tested together"
    )
    assert await world.state(innocent) == "PENDING"

    async def is_told() -> bool:
        return "did not pass its tests at this commit" in world.comment_on(first)

    await world.until(is_told)
    await world.act("draft", number=second, draft=False)
    await world.comment("/merge", on=second)
    await world.rest(3600)
    await world.settle()
    # The second one mends the branch: it goes first, by its own try.
    assert (await world.merged())[:2] == [first, second]
    assert await world.state(innocent) == "MERGED"
