"""Attacks that would stop the queue for others by one pull request that GitHub does not merge."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet

from service.mergequeue.engine.reasons import HoldReason
from tests.adversary.judge import files_on
from tests.harness.world import REPO, World

MERGE = {"method": "PUT"}


@dataclass(frozen=True)
class Attack:
    """A refusal that GitHub gives to one pull request for ever, and who the comment names."""

    status: int
    message: str
    names: str


SENTENCES = {
    "a reader opens a conversation": Attack(
        405,
        "A conversation must be resolved before this pull request can be merged.",
        "all conversations are resolved",
    ),
    "a code owner has to look": Attack(
        405, "Waiting on code owner review from octo/owners.", "code owner"
    ),
    "the last pusher approved it": Attack(
        405,
        "New changes require approval from someone other than the last pusher.",
        "other than the last pusher",
    ),
    "a reviewer asks for changes": Attack(
        405,
        "1 review requesting changes by reviewers with write access.",
        "no reviewer requests changes",
    ),
    "it is part of a stack": Attack(
        403,
        "Merging stacked PRs via this endpoint is not supported. "
        "Use the asynchronous merge endpoint instead.",
        "the PRs below it in its stack",
    ),
    "a workflow file, without backticks": Attack(
        403,
        "refusing to allow a GitHub App to create or update workflow "
        ".github/workflows/README.md without workflows permission",
        "an owner of the repository",
    ),
    "an unsigned head": Attack(
        405, "Commits must have verified signatures.", "the author signs all commits"
    ),
    "a deployment is missing": Attack(
        405, "Missing successful active production deployment.", "required_deployments"
    ),
}
SLOW = {
    "a person put it into GitHub's queue": Attack(
        405, "Pull Request is in the merge queue.", "a maintainer removes the PR from GitHub"
    ),
    "a sentence that nobody has seen": Attack(
        405, "The moon must be full before this is merged.", "a maintainer removes the cause"
    ),
    "out of date for ever": Attack(
        409, "Head branch is out of date. Review and try the merge again.", "a maintainer"
    ),
    "modified for ever, with the same head": Attack(
        409, "Head branch was modified. Review and try the merge again.", "a maintainer"
    ),
    "in progress for ever": Attack(405, "Merge already in progress", "a maintainer"),
    "locked for ever": Attack(423, "Locked", "a maintainer"),
}


async def _refused(world: World, attacks: dict[str, Attack]) -> dict[str, int]:
    """Pull requests that GitHub refuses by these sentences; a good one is behind them all."""
    await world.make_queue(merge_method="SQUASH")
    numbers: dict[str, int] = {}
    for name, attack in attacks.items():
        number = await world.open()
        path = f"*/pulls/{number}/merge"
        await world.fault(
            {**MERGE, "path": path}, "refuse", status=attack.status, message=attack.message
        )
        numbers[name] = number
    good = await world.open(files={"good.txt": "x\n"})
    await world.settle()
    for number in (*numbers.values(), good):
        await world.comment("/merge", on=number)
    return numbers


PLAYED_BY_RULES = (
    "a reader opens a conversation",
    "a code owner has to look",
    "the last pusher approved it",
    "a reviewer asks for changes",
    "a person put it into GitHub's queue",
)
"""What test_standstill_rules.py refuses as well, by a rule that gives such an answer."""
TOLD_AS_ANOTHER = ("modified for ever, with the same head", "locked for ever")
"""What tests/github/test_corpus.py reads as it reads "out of date" and "in progress"."""


def _worlds() -> Iterator[ParameterSet]:
    """The attacks, as many in a world as it can play in a minute."""
    for attacks, many in ((list(SENTENCES), 4), (list(SLOW), 1)):
        for start in range(0, len(attacks), many):
            names = attacks[start : start + many]
            is_further = set(names) <= {*PLAYED_BY_RULES, *TOLD_AS_ANOTHER}
            yield pytest.param(
                {name: (SENTENCES | SLOW)[name] for name in names},
                id="; ".join(names),
                marks=[pytest.mark.soak] if is_further else [],
            )


@pytest.mark.parametrize("attacks", tuple(_worlds()))
@pytest.mark.fault(
    "the provider refuses one pull request for ever",
    holds="those behind it land",
    within="40 min",
)
async def test_one_that_github_refuses_for_ever_does_not_stop_those_behind(
    attacks: dict[str, Attack], world: World
) -> None:
    """Hurts everybody behind it: anybody who may open a pull request stops the whole queue."""
    numbers = await _refused(world, attacks)
    untold = set(numbers)

    async def is_over() -> bool:
        for name in list(untold):
            if attacks[name].names.lower() in world.comment_on(numbers[name]).lower():
                untold.remove(name)
        return not untold and "good.txt" in await files_on(world)

    try:
        await world.until(is_over, 2400)
    except AssertionError:
        shown = [world.comment_on(numbers[name]) for name in untold]
        pytest.fail("\n".join([*untold, *shown, str(await files_on(world))]))
    assert (await world.value()).holds == ()
    for number in numbers.values():
        await world.comment("/merge cancel", on=number)
    await world.settle()


@pytest.mark.fault(
    "the provider is away",
    holds="no submission ends",
    within="20 min",
)
async def test_a_provider_that_is_away_ends_no_submission(world: World) -> None:
    """Hurts authors: an outage of GitHub would count as refusals of their pull request."""
    await world.make_queue(merge_method="SQUASH")
    number = await world.open(files={"good.txt": "x\n"})
    await world.settle()
    modified = "Base branch was modified. Review and try the merge again."
    await world.fault(
        {**MERGE, "path": f"*/pulls/{number}/merge"}, "refuse", status=405, message=modified
    )
    await world.fault({"method": "GET", "path": f"/repos/{REPO}"}, "refuse", status=502)
    await world.comment("/merge", on=number)

    async def is_held() -> bool:
        held = {hold.reason for hold in (await world.value()).holds}
        return HoldReason.PROVIDER_UNAVAILABLE in held

    await world.until(is_held, 2400)
    await world.until(lambda: says(world, number, "GitHub has been unreachable since"))
    assert (await world.entry(number)).refusals == 0
    world.sandbox.world.faults.clear()
    await world.settle()
    assert "good.txt" in await files_on(world)


async def says(world: World, number: int, words: str) -> bool:
    """Whether the comment on the pull request has these words."""
    return words in world.comment_on(number)
