"""Attacks that would stop the queue by GitHub's own rules, which the sandbox enforces here."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bot.sandbox.acts import seeds
from service.errors import Invalid
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.wording import rule_notes
from service.vocabulary import MergeMethod
from tests.adversary.judge import files_on
from tests.harness.world import CI, World, WorldOptions

# CI as a workflow with a path filter on `pull_request` alone: a head `docs-…` gets no report.
FILTERED = CI.replace("    rules:\n", '    rules:\n      - {branch: "docs-*", conclusion: never}\n')


@pytest.fixture
def world_options() -> WorldOptions:
    """CI with a filter on what it tests of pull requests' own heads."""
    return WorldOptions(ci=FILTERED)


def set_rules(world: World, **value: Any) -> None:
    """Set rules of the repository in the sandbox (bot/sandbox/acts/seeds.py)."""
    seeds.set_rules(world.repository, value)


def rulesets(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One more ruleset for `main`, next to the one with the required check."""
    return {"rulesets": [{"name": "more", "rules": list(rules), **more}]}


def rule(kind: str, **parameters: Any) -> dict[str, Any]:
    """One rule of a ruleset."""
    return {"type": kind, "parameters": parameters}


def head_of(world: World, number: int) -> str:
    """The head commit of a pull request."""
    pull = world.repository.issues[number].pull
    assert pull is not None
    return pull.head_sha


def ci_branches(world: World) -> list[str]:
    """The test branches on which CI ran."""
    branches = [run.head_branch for run in world.repository.workflow_runs]
    return [branch for branch in branches if branch.startswith("headgate/")]


@dataclass(frozen=True)
class Attack:
    """A pull request that a rule refuses; `names` is what its comment says of who must act."""

    rules: dict[str, Any]
    offend: Callable[[World], Awaitable[int]]
    names: tuple[str, ...]
    mend: Callable[[World, int], Awaitable[None]] | None = None
    merge_method: MergeMethod = MergeMethod.SQUASH


async def discussed(world: World) -> int:
    """Carol may only read, and opens a conversation."""
    number = await world.open()
    await world.act("discuss", by="carol", number=number, body="Why?")
    return number


async def owned(world: World) -> int:
    """It changes a file whose owner has not approved it."""
    return await world.open(files={"owned/file.txt": "x\n"})


async def pushed_by_its_approver(world: World) -> int:
    """Alice pushes onto it and approves it herself."""
    number = await world.open()
    await world.act("push", by="alice", number=number, files={"more.txt": "x\n"})
    await world.act("approve", by="alice", number=number)
    return number


async def unwanted(world: World) -> int:
    """Alice asks for changes."""
    number = await world.open()
    await world.act("request_changes", by="alice", number=number, body="No.")
    return number


async def skipping(world: World) -> int:
    """Its head commit says that CI has nothing to do."""
    return await world.open(message="Change words [skip ci]")


async def filtered(world: World) -> int:
    """A filter of the workflow leaves out its head."""
    return await world.open(head="docs-1")


async def stacked(world: World) -> int:
    """It is the top of a native stack whose bottom is a draft."""
    bottom = await world.open(head="bottom", draft=True)
    start: dict[str, Any] = {"from": head_of(world, bottom)}
    number = await world.open(head="above", base="bottom", **start)
    await world.act("stack", numbers=[bottom, number])
    return number


async def queued(world: World) -> int:
    """Bob puts it into GitHub's own merge queue."""
    number = await world.open()
    await world.act("enqueue", number=number)
    return number


async def unsigned(world: World) -> int:
    """Its commit has no signature."""
    return await world.open()


async def approve(world: World, number: int) -> None:
    """Alice approves the good one."""
    await world.act("approve", by="alice", number=number)


async def sign(world: World, number: int) -> None:
    """The good one has a signed head."""
    world.repository.git.objects.signed.add(head_of(world, number))


async def deploy(world: World, number: int) -> None:
    """The good one is deployed."""
    await world.act("deploy", number=number, environment="production")


OWNERS = {"branch": "main", "bypass": True, "files": {".github/CODEOWNERS": "owned/ @alice\n"}}
ATTACKS = {
    "a reader's conversation, classic": Attack(
        {"protection": {"main": {"conversations": True}}}, discussed, ("conversations",)
    ),
    "a reader's conversation, ruleset": Attack(
        rulesets(rule("pull_request", required_review_thread_resolution=True)),
        discussed,
        ("conversations",),
    ),
    "code owners": Attack(
        rulesets(rule("pull_request", require_code_owner_review=True)), owned, ("code owner",)
    ),
    "last push": Attack(
        {"protection": {"main": {"approvals": 1, "last_push_approval": True}}},
        pushed_by_its_approver,
        ("other than the last pusher",),
        approve,
    ),
    "changes requested": Attack(
        {"protection": {"main": {"approvals": 1}}},
        unwanted,
        ("no reviewer requests changes",),
        approve,
    ),
    "skip ci": Attack({}, skipping, ("`unit`", "the author runs CI")),
    "filter of the workflow": Attack({}, filtered, ("`unit`", "the author runs CI")),
    "stack": Attack({}, stacked, ("which is below it in its stack",)),
    "GitHub's queue": Attack(
        rulesets(rule("merge_queue"), bypass_app=True),
        queued,
        ("a maintainer removes the PR from GitHub",),
    ),
    "signatures": Attack(
        rulesets(rule("required_signatures")),
        unsigned,
        ("the author signs all commits",),
        sign,
        MergeMethod.MERGE_COMMIT,
    ),
    "deployments": Attack(
        rulesets(rule("required_deployments", required_deployment_environments=["production"])),
        unsigned,
        ("required_deployments",),
        deploy,
    ),
}


FURTHER = {
    "a reader's conversation, ruleset": "the classic protection, whose refusal is the same",
    "filter of the workflow": "skip ci, after which the head has no report either",
    "signatures": "the sentence of an unsigned head in test_standstill_landing.py",
    "deployments": "the sentence of a missing deployment in test_standstill_landing.py",
}
"""What `make soak` plays, and by what `make test` covers it."""


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, id=name, marks=[pytest.mark.soak] if name in FURTHER else [])
        for name, attack in ATTACKS.items()
    ],
)
async def test_one_that_a_rule_refuses_does_not_stop_those_behind(
    attack: Attack, world: World
) -> None:
    """Hurts everybody behind it: one pull request that no rule lets through stops the queue."""
    await world.act("push", by="alice", **OWNERS)
    set_rules(world, **attack.rules)
    await world.make_queue(merge_method=attack.merge_method)
    bad = await attack.offend(world)
    good = await world.open(files={"good.txt": "x\n"})
    if attack.mend is not None:
        await attack.mend(world, good)
    await world.settle()
    for number in (bad, good):
        await world.comment("/merge", on=number)

    async def is_over() -> bool:
        said = world.comment_on(bad).lower()
        return all(one.lower() in said for one in attack.names) and await is_landed(world)

    try:
        await world.until(is_over, 900)
    except AssertionError:
        holds = (await world.value()).holds
        shown = [world.comment_on(bad), world.comment_on(good), str(holds)]
        pytest.fail(
            "\n".join([*shown, *await world.landings_refused(), str(await files_on(world))])
        )
    assert (await world.value()).holds == ()
    await world.comment("/merge cancel", on=bad)
    await world.settle()


async def is_landed(world: World) -> bool:
    """Whether the good one is on `main`."""
    return "good.txt" in await files_on(world)


async def test_a_stacked_pull_request_takes_no_ci(world: World) -> None:
    """Hurts whoever pays for CI: it is spent again and again on what cannot be merged yet."""
    await world.make_queue(merge_method=MergeMethod.SQUASH)
    number = await stacked(world)
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert (await world.entry(number)).state.value == "NOT_READY"
    assert ci_branches(world) == []
    await world.comment("/merge cancel", on=number)
    await world.settle()


async def test_a_strict_rule_holds_the_queue_by_name_and_its_mend_works(world: World) -> None:
    """Hurts everybody: one setting stops every landing but the first, and no text says why."""
    set_rules(world, protection={"main": {"checks": ["unit"], "strict": True}})
    await world.make_queue(merge_method=MergeMethod.SQUASH)
    numbers = [await world.open(fresh=True), await world.open(fresh=True)]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)

    async def is_held() -> bool:
        return bool((await world.value()).holds)

    await world.until(is_held, 900)
    assert [hold.reason for hold in (await world.value()).holds] == [HoldReason.STRICT_CHECKS]
    assert await world.merged() == numbers[:1]

    async def is_told() -> bool:
        return "up to date before merging" in world.comment_on(numbers[1])

    await world.until(is_told, 120)
    set_rules(world, protection={"main": None})

    async def are_landed() -> bool:
        return await world.merged() == numbers

    await world.until(are_landed, 3600)
    assert (await world.value()).holds == ()


async def test_a_queue_that_no_rule_lets_land_is_not_made(world: World) -> None:
    """Hurts everybody: merge commits are tested for hours, and a linear history takes none."""
    set_rules(world, **rulesets(rule("required_linear_history")))
    with pytest.raises(Invalid) as refused:
        await world.make_queue(merge_method=MergeMethod.MERGE_COMMIT)
    assert refused.value.code == "merge_method_not_allowed"
    assert "allowed: REBASE, SQUASH" in str(refused.value)


async def test_githubs_own_queue_stops_ours_before_ci_is_spent(world: World) -> None:
    """Hurts whoever pays for CI: everything is tested, and GitHub's own queue lets none land."""
    set_rules(world, protection={"main": {"queue": True}})
    await world.make_queue(merge_method=MergeMethod.SQUASH)
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert [hold.reason for hold in (await world.value()).holds] == [HoldReason.PROVIDER_QUEUE]
    assert ci_branches(world) == []
    assert await world.merged() == []
    assert "GitHub" in world.comment_on(number)
    await world.comment("/merge cancel", on=number)
    await world.settle()


async def test_a_new_queue_says_what_the_rules_will_do_to_it(world: World) -> None:
    """Hurts who sets it up: the first hint of a rule is a queue that stands still."""
    deployed = rule("required_deployments", required_deployment_environments=["production"])
    set_rules(world, **rulesets(deployed, rule("required_signatures")))
    set_rules(world, protection={"main": {"checks": ["unit"], "strict": True}})
    await world.make_queue(merge_method=MergeMethod.SQUASH)
    required = (await world.value()).required
    assert required is not None
    assert set(required.notes) == {"strict", "required_deployments", "required_signatures"}
    notes = {note.rule: note.text for note in rule_notes.rule_notes(required.notes)}
    assert "Turn off “Require branches to be up to date before merging”" in notes["strict"]
    assert set(notes) == set(required.notes)
