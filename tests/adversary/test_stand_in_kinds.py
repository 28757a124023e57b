"""Attacks on the kind of test branch: CI that skips it, doubles it, or cannot be shown it."""

import pytest

from service.provider.values import Vehicle
from tests.adversary.judge import files_on, landed_on
from tests.harness.world import World

WORKFLOW = ".github/workflows/ci.yml"
GUARD = "jobs: {unit: {if: github.event.pull_request.draft == false}}\n"
CHECK = """
checks:
  - name: unit
    seconds: 3
    skips_drafts: %s
    rules: [{exists: [a.txt, b.txt], conclusion: failure}]
"""
ON_BOTH = 'triggers: {push: ["headgate/merge/**"], pull_request: true}'
ON_PULLS = "triggers: {pull_request: true}"
PUSHED = "on: {push: {branches: ['headgate/merge/**']}, pull_request: {}}\n"
PULLED = "on: pull_request\n"


async def with_ci(world: World, workflow: str, triggers: str, *, skips: bool = True) -> None:
    """Bring a workflow and what it does onto main, as its maintainer."""
    check = CHECK % str(skips).lower()
    files = {WORKFLOW: workflow, ".sandbox/ci.yml": f"{triggers}{check}"}
    more = {"branch": "main", "files": files, "bypass": True}
    world.start = (await world.act("push", by="alice", **more))["sha"]
    world.older = world.start
    await world.act("push", by="alice", branch="main", files={"later.txt": "x\n"}, bypass=True)
    world.start = str(world.repository.git.branch("main"))
    await world.settle()


async def two_halves(world: World) -> list[int]:
    """Two pull requests that pass alone and fail together, both asked to be merged."""
    numbers = [await world.open(files={name: "x\n"}) for name in ("a.txt", "b.txt")]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    return numbers


async def kind_of(world: World) -> tuple[Vehicle, str]:
    value = await world.value()
    drafts = value.config.create_prs_for_testing_branches
    return Vehicle.DRAFT_PR if drafts else Vehicle.PUSH, value.test_branch_reason or ""


async def test_a_guard_against_drafts_tests_by_push_and_lands_nothing_untested(
    world: World,
) -> None:
    """Hurts everybody who builds main: every test is skipped on a draft, and skipped passes."""
    await with_ci(world, PUSHED + GUARD, ON_BOTH)
    await two_halves(world)
    assert len(await landed_on(world)) == 1
    assert not {"a.txt", "b.txt"} <= await files_on(world)
    assert (await kind_of(world))[0] is Vehicle.PUSH


async def test_a_guard_without_a_push_trigger_lands_nothing_and_says_what_to_change(
    world: World,
) -> None:
    """Hurts everybody who builds main: no workflow ever tests what the queue builds."""
    await with_ci(world, PULLED + GUARD, ON_PULLS)
    await two_halves(world)
    assert await landed_on(world) == []
    kind, reason = await kind_of(world)
    assert kind is Vehicle.PUSH
    assert "Let it also start on pushes to headgate/merge/**" in reason


async def test_two_triggers_do_not_give_a_test_branch_two_suites(world: World) -> None:
    """Hurts everybody who builds main: the first of two suites gives the verdict too early."""
    triggers = f"{ON_BOTH}\ndelays: {{pull_request: 20}}"
    await with_ci(world, PUSHED, triggers, skips=False)
    numbers = await two_halves(world)
    assert len(await landed_on(world)) == 1
    app = world.sandbox.app
    heads = {pull.head_sha for pull in world.repository.pulls() if pull.number in numbers}
    suites = [
        len([one for one in listed if one.app is not app])
        for sha, listed in world.repository.suites.items()
        if sha not in heads
    ]
    assert max(suites, default=0) == 1


async def test_a_repository_without_drafts_is_tested_by_push(world: World) -> None:
    """Hurts everybody in the queue: one refused draft pull request stops it for good."""
    world.repository.settings.drafts = False
    await world.make_queue()
    assert (await kind_of(world))[0] is Vehicle.DRAFT_PR
    await two_halves(world)
    assert len(await landed_on(world)) == 1
    kind, reason = await kind_of(world)
    assert kind is Vehicle.PUSH
    assert "Draft pull requests are not supported in this repository." in reason
    assert (await world.value()).holds == ()


async def test_drafts_taken_away_later_stop_nothing(world: World) -> None:
    """Hurts everybody in the queue: the plan of the repository changes while it runs."""
    await world.make_queue(create_prs_for_testing_branches=True)
    first = await world.open()
    await world.comment("/merge", on=first)
    await world.settle()
    world.repository.settings.drafts = False
    second = await world.open()
    await world.comment("/merge", on=second)
    await world.settle()
    assert await world.merged() == [first, second]
    value = await world.value()
    assert not value.holds
    assert not value.config.create_prs_for_testing_branches


async def test_a_trigger_removed_after_the_queue_was_made_lands_nothing_untested(
    world: World,
) -> None:
    """Hurts everybody who builds main: a landed edit of CI switches the queue's tests off."""
    await with_ci(world, PUSHED, ON_BOTH, skips=False)
    await world.make_queue()
    assert (await kind_of(world))[0] is Vehicle.PUSH
    await with_ci(world, PULLED, ON_PULLS)
    await two_halves(world)
    assert await landed_on(world) == []


async def test_a_pull_request_chooses_no_kind_for_the_queue(world: World) -> None:
    """Hurts everybody in the queue: an outsider's workflow file decides how all are tested."""
    await with_ci(world, PUSHED, ON_BOTH, skips=False)
    number = await world.open(by="carol", fork=True, files={WORKFLOW: PULLED, "c.txt": "x\n"})
    await world.settle()
    await world.comment("/merge", on=number, by="alice")
    await world.settle()
    assert (await kind_of(world))[0] is Vehicle.PUSH
    assert await landed_on(world) == []


@pytest.mark.parametrize("drafts", [True, False])
async def test_a_kind_set_by_hand_wins_and_says_that_the_workflows_contradict(
    world: World, drafts: bool
) -> None:
    """Hurts whoever relies on the setting: the queue changes it back, or keeps the trap silent."""
    await with_ci(world, PUSHED if drafts else PULLED, ON_BOTH, skips=False)
    await world.make_queue(create_prs_for_testing_branches=drafts)
    kind, reason = await kind_of(world)
    assert kind is (Vehicle.DRAFT_PR if drafts else Vehicle.PUSH)
    assert reason.startswith(
        "Chosen by the setting createPrsForTestingBranches. But ci.yml starts on "
    )


async def test_workflow_files_that_cannot_be_read_stop_no_queue(world: World) -> None:
    """Hurts whoever wants a queue: broken, huge and hostile files keep it from being made."""
    files = {
        ".github/workflows/broken.yml": "on: [",
        ".github/workflows/hostile.yml": f"on: {{push: {{branches: ['{'*a' * 100}b']}}}}\n",
        ".github/workflows/huge.yml": "#" * 300_000,
    }
    await world.act("push", by="alice", branch="main", files=files, bypass=True)
    await world.make_queue()
    kind, reason = await kind_of(world)
    assert (kind, "too large" in reason) == (Vehicle.DRAFT_PR, True)
