"""Attacks that would land a commit which no required check has tested."""

from typing import Any

import pytest

from bot.sandbox import reports
from bot.sandbox.acts import seeds
from bot.sandbox.records import Actor, CheckRun, CheckSuite
from service.mergequeue.engine.config import Toggle
from service.mergequeue.engine.inputs import PlaceHold, ReleaseHold
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations import turn
from service.mergequeue.reasons.record import HoldScope
from service.vocabulary import SYSTEM
from tests.adversary.judge import files_on, landed_on
from tests.harness import gates
from tests.harness.world import REPO, World, WorldOptions

HERE = "headgate/merge/**"
TRIGGERS = 'triggers: {push: ["headgate/merge/**"], pull_request: true}\nchecks:\n'


def a_ci(**checks: str) -> str:
    """CI with these checks; each has its rules, one line of YAML."""
    lines = (
        f"  - {{name: {name}, seconds: 1, rules: [{text}]}}\n" for name, text in checks.items()
    )
    return TRIGGERS + "".join(lines)


def options(required: str, ci: str) -> WorldOptions:
    """A world in which these names are required, separated by blanks."""
    return WorldOptions(required=tuple(required.split()), ci=ci)


def skipped(on: str = HERE, conclusion: str = "skipped", **more: str) -> str:
    """A rule that skips a check on these branches."""
    files = f", exists: [{more['exists']}]" if more else ""
    return f'{{branch: "{on}"{files}, conclusion: {conclusion}}}'


TOGETHER = "{exists: [a.txt, b.txt], conclusion: failure}"


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    """The world that a test names, or the usual one."""
    found: WorldOptions = getattr(request, "param", WorldOptions())
    return found


def of(required: str, **rules: str) -> pytest.MarkDecorator:
    """Give a test a world with these required names and CI rules."""
    return pytest.mark.parametrize(
        "world_options", [options(required, a_ci(**rules))], indirect=True
    )


async def merge(world: World, *numbers: int) -> None:
    """Submit pull requests and let everything that follows happen."""
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()


async def opened(world: World, name: str, **more: Any) -> int:
    """Open a pull request that adds one file; its own checks end."""
    number = await world.open(files={name: "x\n"}, **more)
    await world.settle()
    return number


async def test_two_that_break_the_build_only_together_do_not_both_land(world: World) -> None:
    """Hurts everybody who builds main: each half passes alone, both together fail."""
    one = await world.open(files={"a.txt": "x\n"})
    other = await world.open(files={"b.txt": "x\n"})
    await world.settle()
    await world.comment("/merge", on=one)
    await world.comment("/merge", on=other)
    await world.settle()
    assert len(await landed_on(world)) == 1
    assert not {"a.txt", "b.txt"} <= await files_on(world)


@pytest.mark.parametrize(
    "world_options",
    [
        options("unit", a_ci(unit=f"{skipped()}, {TOGETHER}")),
        pytest.param(
            options("unit lint", a_ci(unit=skipped(), lint=skipped(conclusion="neutral"))),
            marks=pytest.mark.soak,
        ),
        # One of two really runs, and is not the one that knows.
        options("unit lint", a_ci(unit=f"{skipped()}, {TOGETHER}", lint="")),
    ],
    indirect=True,
    ids=["skipped", "both", "one-runs"],
)
async def test_what_a_draft_guard_skips_does_not_land(world: World) -> None:
    """Hurts everybody who builds main: the workflow skips draft PRs, and so the test branch."""
    one, other = await opened(world, "a.txt"), await opened(world, "b.txt")
    await world.make_queue()
    await merge(world, one, other)
    assert await landed_on(world) == []
    assert [await world.state(one), await world.state(other)] == ["NOT_READY", "NOT_READY"]
    assert (await world.entry(one)).reason.value == "no_evidence"
    text = world.comment_on(one)
    assert "was skipped on the test branch" in text or "were skipped on the test branch" in text
    assert "createPrsForTestingBranches" in text
    assert "failed" not in text.lower()
    assert "no_evidence" not in world.check_on(one)


@of("unit", unit=f"{skipped(conclusion='neutral')}")
async def test_a_neutral_check_is_not_told_as_skipped(world: World) -> None:
    """Hurts the author: the advice about drafts does not help a check that ended neutral."""
    number = await opened(world, "a.txt")
    await merge(world, number)
    assert await landed_on(world) == []
    text = world.comment_on(number)
    assert "ended as `neutral` on the test branch" in text
    assert "skips draft PRs" not in text
    assert "was skipped" not in text


@of("unit", unit=f"{skipped()}")
async def test_what_no_check_tested_is_tested_again_only_when_somebody_asks(world: World) -> None:
    """Hurts the project's CI budget: the same empty test run begins again without end."""
    one = await opened(world, "a.txt")
    await merge(world, one)
    runs = (await world.value()).next_run
    await world.rest(300)
    await world.settle()
    assert (await world.value()).next_run == runs
    await merge(world, one)
    assert (await world.value()).next_run == runs + 1
    assert await landed_on(world) == []


@of("unit", unit=f"{skipped('**')}")
async def test_what_every_required_check_skips_does_not_land(world: World) -> None:
    """Hurts everybody who builds main: a path filter lets the only required check run nowhere."""
    await merge(world, await opened(world, "a.txt"))
    assert await landed_on(world) == []


@of("unit lint", unit=skipped("**", exists="docs.txt"), lint="")
async def test_a_path_filter_does_not_keep_documentation_out(world: World) -> None:
    """Hurts authors of documentation: a check that never runs for them is waited for."""
    await merge(world, await opened(world, "a.txt"))
    await merge(world, await opened(world, "docs.txt"))
    assert await files_on(world) >= {"docs.txt"}


@of("unit lint", unit=skipped("**", exists="docs.txt"), lint="")
async def test_in_a_batch_no_member_lands_by_what_was_skipped_for_another(world: World) -> None:
    """Hurts everybody who builds main: documentation in a batch switches the tests off."""
    docs, code = await opened(world, "docs.txt"), await opened(world, "a.txt")
    await world.make_queue(batch=True, batching_min_size=2)
    await merge(world, docs, code)
    await world.rest(400)
    await world.settle()
    assert "a.txt" not in await files_on(world)
    assert (await world.entry(code)).reason.value == "no_evidence"


@of("unit lint", unit=f"{skipped('docs-*')}, {skipped(exists='same.txt')}", lint="")
async def test_a_result_with_a_skipped_check_is_not_reused(world: World) -> None:
    """Hurts everybody who builds main: an equal tree passed for somebody whom CI let through."""
    docs = await opened(world, "same.txt", head="docs-1")
    code = await opened(world, "same.txt", head="code-1")
    await world.make_queue()
    await merge(world, await opened(world, "a.txt"))
    before = await landed_on(world)
    queue = await world.queue()
    freeze = PlaceHold(HoldReason.FREEZE, HoldScope.LAND, "wait", SYSTEM)
    await turn.take(world.runtime, queue.id, [freeze])
    await merge(world, docs)
    assert await world.state(docs) == "TESTS_PASSED"
    await world.act("close", number=docs)
    await world.settle()
    hold = (await world.value()).holds[0]
    await turn.take(world.runtime, queue.id, [ReleaseHold(hold.id, "", SYSTEM)])
    await merge(world, code)
    assert await landed_on(world) == before


@of("unit", unit=f"{skipped('**')}")
async def test_a_head_whose_checks_were_skipped_does_not_land_directly(world: World) -> None:
    """Hurts everybody who builds main: a head that contains the tip needs no test branch."""
    await world.make_queue(direct_merge_mode=Toggle.ALWAYS)
    await merge(world, await opened(world, "a.txt", fresh=True))
    assert await landed_on(world) == []


@of(
    "unit lint",
    unit=f"{skipped(exists='docs.txt')}, {skipped('docs-*')}, "
    f'{{branch: "{HERE}", exists: [bad.txt], conclusion: failure}}',
    lint="",
)
async def test_a_follower_that_skipped_the_check_clears_no_failure_below_it(world: World) -> None:
    """Hurts everybody who builds main: documentation behind a failure makes it pass."""
    bad = await opened(world, "bad.txt")
    docs = await opened(world, "docs.txt", head="docs-1")
    await world.make_queue(can_optimistically_merge=True, pending_failure_depth=1)
    await merge(world, await opened(world, "a.txt"))
    await merge(world, bad, docs)
    assert await world.state(bad) == "FAILED"
    assert "bad.txt" not in await files_on(world)


@of("unit", unit=skipped(), build=f'{{branch: "{HERE}", conclusion: cancelled}}')
async def test_a_job_skipped_beside_an_interrupted_one_proves_nothing(world: World) -> None:
    """Hurts everybody who builds main: CI stops the build, and the tests after it are skipped."""
    one = await opened(world, "a.txt")
    await merge(world, one)
    assert await landed_on(world) == []
    assert (await world.entry(one)).reason.value == "ci_interrupted"


@pytest.mark.parametrize(
    "world_options",
    [
        options(
            "unit",
            f"{TRIGGERS}  - {{name: unit, seconds: 1}}\n"
            "  - {name: unit, kind: status, seconds: 5, rules: "
            f'[{{branch: "{HERE}", conclusion: failure}}]}}\n',
        )
    ],
    indirect=True,
)
async def test_a_check_does_not_speak_for_a_status_of_its_name(world: World) -> None:
    """Hurts everybody who builds main: a quick check passes, the status of its name fails."""
    await merge(world, await opened(world, "a.txt"))
    assert await landed_on(world) == []


@pytest.mark.parametrize(
    "world_options",
    [
        options(
            "unit",
            f"{TRIGGERS}  - {{name: lint, seconds: 1}}\n"
            "  - {name: unit, seconds: 1, app: stranger}\n",
        )
    ],
    indirect=True,
)
async def test_another_app_does_not_speak_for_a_pinned_check(world: World) -> None:
    """Hurts everybody who builds main: any App may report any name."""
    one = await world.open(files={"a.txt": "x\n"})
    await world.settle()
    app = world.sandbox.world.apps["sandbox-ci"]
    pinned = {"context": "unit", "integration_id": app.id}
    rule = {
        "type": "required_status_checks",
        "parameters": {
            "required_status_checks": [pinned],
            "strict_required_status_checks_policy": False,
        },
    }
    ruleset = {"name": "required", "include": ["~DEFAULT_BRANCH"], "rules": [rule]}
    seeds.set_rules(world.repository, {"rulesets": [ruleset]})
    await merge(world, one)
    assert await landed_on(world) == []


def second_suite(world: World, sha: str) -> CheckSuite:
    """Begin a second suite of the same App on a commit; it has no check run yet."""
    app = world.sandbox.world.apps["sandbox-ci"]
    return reports.new_suite(world.repository, app, sha, None)


def job(world: World, suite: CheckSuite, name: str, **fields: str) -> CheckRun:
    """Begin a job in a suite."""
    given = {"name": name, "status": "in_progress", **fields}
    actor = Actor(suite.app.bot, suite.app)
    return reports.add_run(world.repository, suite, actor, given)


@pytest.mark.parametrize("world_options", [WorldOptions(ci=gates.CI)], indirect=True)
async def test_the_first_of_two_suites_gives_no_verdict(world: World) -> None:
    """Hurts everybody who builds main: the second suite of a name begins late, and fails."""
    one = await opened(world, "a.txt")
    await world.make_queue()
    await world.comment("/merge", on=one)
    gate = await gates.under_test(world, one)
    suite = second_suite(world, gate.run.sha or "")
    await gates.ends(world, one)
    await world.rest(20)
    assert await landed_on(world) == []
    job(world, suite, "unit", status="completed", conclusion="failure")
    await world.settle()
    assert await landed_on(world) == []


@pytest.mark.parametrize("world_options", [WorldOptions(ci=gates.CI)], indirect=True)
async def test_a_suite_that_never_starts_holds_a_passed_test_for_two_minutes_only(
    world: World,
) -> None:
    """Hurts everybody in the queue: an App leaves an empty suite queued for ever."""
    one = await opened(world, "a.txt")
    await world.make_queue()
    await world.comment("/merge", on=one)
    gate = await gates.under_test(world, one)
    second_suite(world, gate.run.sha or "")
    await gates.ends(world, one)
    await world.rest(150)
    await world.settle()
    assert await files_on(world) >= {"a.txt"}


async def test_a_merge_by_hand_just_before_ours_is_never_our_landing(world: World) -> None:
    """Hurts auditors: a merge that went around the queue would be shown as tested and proved."""
    await world.make_queue(merge_method="SQUASH")
    number = await world.open(files={"by-hand.txt": "x\n"})
    await world.settle()
    by_hand = {"number": number, "method": "squash", "bypass": True}
    act = {"act": "merge", "as": "alice", "repo": REPO, **by_hand}
    await world.fault({"method": "PUT", "path": f"*/pulls/{number}/merge"}, "before", act=act)
    await world.comment("/merge", on=number)
    await world.settle()
    assert "by-hand.txt" in await files_on(world)
    entry = await world.entry(number)
    assert (entry.state, entry.reason) == (EntryState.MERGED, Reason.MERGED_BY_HAND)
    assert await world.landed_trees() == []
    assert len(await world.landings_refused()) == 1
    assert "outside the queue" in world.comment_on(number)


MENDED = ".github/workflows/ci.yml"


@of("unit", unit=f'{{branch: "{HERE}", exists: [{MENDED}], conclusion: success}}, {skipped()}')
async def test_a_mended_workflow_lets_what_was_skipped_be_tested_again(world: World) -> None:
    """Hurts authors: they do what the comment asks for, and their pull request waits for ever."""
    await world.make_queue()
    number = await world.open(files={"a.txt": "x\n"})
    await merge(world, number)
    assert await world.state(number) == "NOT_READY"
    assert "Headgate then tests it again" in world.comment_on(number)
    before = len(world.repository.issues[number].comments)
    await world.act("push", by="alice", branch="main", files={"b.txt": "x\n"}, bypass=True)
    await world.settle()
    assert await world.state(number) == "NOT_READY", "another push mends nothing"
    await world.act("push", by="alice", branch="main", files={MENDED: "on: push\n"}, bypass=True)
    await world.settle()
    assert "a.txt" in await files_on(world)
    assert len(world.repository.issues[number].comments) == before
