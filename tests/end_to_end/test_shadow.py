"""A queue in shadow beside another one: it decides, writes nothing, and its report is right."""

import re
from typing import Any

import pytest

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.operations import queues, reconcile, shadow_report
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.operations.shadow_report import ShadowReport, Verdict
from service.vocabulary import SYSTEM, MergeMethod
from tests.end_to_end.test_doctor import set_rules
from tests.end_to_end.test_doctor_conditions import push
from tests.harness.world import REPO, World, WorldOptions

BROKEN = "broken.txt"
TRIGGERS = 'triggers: {push: ["headgate/merge/**", main], pull_request: true}'
CI = f"""
{TRIGGERS}
checks:
  - {{name: unit, seconds: 2, rules: [{{exists: [{BROKEN}], conclusion: failure}}]}}
"""
ON_TEST_BRANCHES = re.compile(
    rf"POST /api/v3/repos/{REPO}/(?:git/refs|git/commits|merges|branches/headgate/temp/.*/rename)"
    rf"|DELETE /api/v3/repos/{REPO}/git/refs/heads/headgate/.*"
)
FILE = """
version: 1
queues:
  main: {shadow: true, requiredStatuses: [unit], createPrsForTestingBranches: false}
"""
BESIDE: dict[str, Any] = {"shadow": True, "create_prs_for_testing_branches": False}


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    is_owned = "github" in request.node.name
    return WorldOptions(ci=CI, required=("unit",) if is_owned else ())


def writes_of(world: World) -> list[str]:
    """Calls of our App that write anything but test branches."""
    bot, found = world.sandbox.app.bot.login, []
    for one in world.sandbox.world.calls:
        call = f"{one['method']} {one['path']}"
        is_query = one["path"] == "/api/graphql" and "mutation" not in str(one["body"])
        is_read = one["method"] == "GET" or is_query or ON_TEST_BRANCHES.fullmatch(call)
        if one["by"] == bot and not is_read:
            found.append(call)
    return found


async def merged_by_the_other(world: World, number: int) -> None:
    """The other queue merges, through GitHub's API."""
    await world.act("merge", number=number, by="alice")
    await world.settle()


def message_of(world: World, sha: str | None) -> str:
    """The message of a commit."""
    commit = world.repository.git.objects.commit(sha or "")
    assert commit is not None
    return str(commit.message)


async def the_report(world: World) -> ShadowReport:
    """The report after a sweep of all queues."""
    await reconcile.read_all_queues(world.runtime)
    await world.settle()
    return await shadow_report.load_report(world.runtime, await world.queue())


async def test_it_decides_beside_another_queue_and_writes_nothing(world: World) -> None:
    await world.make_queue(required_statuses=("unit",), **BESIDE)
    good, broken = await world.open(), await world.open(files={BROKEN: "x\n"})
    unknown = await world.open()
    for number in (good, broken):
        await world.comment("bors r+", on=number)
    await world.comment("/merge status", on=good)
    await world.comment("bors try", on=good)
    await world.settle()
    assert (await world.state(good), await world.state(broken)) == ("TESTS_PASSED", "FAILED")
    assert await world.merged() == []
    await merged_by_the_other(world, good)
    await world.comment("bors r+", on=unknown)
    await world.until(lambda: is_in(world, unknown, "TESTING"))
    for number in (unknown, broken):
        await merged_by_the_other(world, number)
    await world.rest(30)
    report = await the_report(world)
    rows = {row.number: row for row in report.rows}
    assert {number: row.verdict for number, row in rows.items()} == {
        good: Verdict.PASSED,
        broken: Verdict.FAILED,
        unknown: Verdict.UNDECIDED,
    }
    assert all(row.is_merged and row.merged_at for row in rows.values())
    assert (rows[good].is_red, rows[broken].is_red) == (False, True)
    assert rows[broken].failed_checks == ("unit",)
    assert (report.compared, report.same, report.failed_but_merged) == (2, 1, 1)
    assert (report.merged, report.is_small) == (3, True)
    assert report.to_verdict is not None
    assert report.to_merge is not None
    saved_s = report.to_merge.p50_s - report.to_verdict.p50_s
    assert report.saved_p50_s == pytest.approx(saved_s)
    assert saved_s > 0
    assert writes_of(world) == []


async def is_in(world: World, number: int, state: str) -> bool:
    """Return whether a pull request has this state."""
    known = (await world.value()).entries
    return number in known and known[number].state == state


async def test_its_label_and_its_own_commands_are_obeyed_in_silence(world: World) -> None:
    await world.make_queue(required_statuses=("unit",), enqueueing_label="automerge", **BESIDE)
    labelled, commanded, strange = [await world.open() for _ in range(3)]
    await world.act("label", number=labelled, label="automerge", by="alice")
    await world.comment("/merge", on=commanded)
    await world.comment("/merge", on=strange, by="dave")
    await world.settle()
    await world.until(lambda: is_in(world, commanded, "TESTS_PASSED"))
    assert await world.state(labelled) == "TESTS_PASSED"
    await world.comment("/merge cancel", on=commanded)
    await world.settle()
    assert await world.state(commanded) == "CANCELLED"
    assert strange not in (await world.value()).entries
    assert "automerge" in str(world.repository.issues[labelled].labels)
    assert writes_of(world) == []


async def test_a_first_merge_makes_a_queue_in_shadow_if_the_file_says_so(world: World) -> None:
    await push(world, {".github/headgate.yml": FILE})
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert (await world.value()).config.shadow
    assert writes_of(world) == []


async def test_a_queue_of_github_is_shadowed_and_its_pull_requests_enter(world: World) -> None:
    rules = [{"type": "merge_queue", "parameters": {}}]
    set_rules(world, rulesets=[{"name": "native", "rules": rules}])
    await world.make_queue(**BESIDE)
    assert not (await world.value()).holds
    number, dropped = await world.open(), await world.open()
    await world.rest(5)
    await world.settle()
    for each in (number, dropped):
        await world.act("enqueue", number=each, by="alice")
    await world.settle()
    await world.until(lambda: is_in(world, number, "TESTS_PASSED"))
    await world.act("dequeue", number=dropped, by="alice", reason="MANUAL")
    await world.settle()
    assert await world.state(dropped) == "CANCELLED"
    assert writes_of(world) == []


async def test_a_queue_that_leaves_its_shadow_lands_what_passed(world: World) -> None:
    method = MergeMethod.MERGE_COMMIT
    await world.make_queue(required_statuses=("unit",), merge_method=method, **BESIDE)
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    await world.until(lambda: is_in(world, number, "TESTS_PASSED"))
    (run,) = (await world.value()).runs.values()
    assert message_of(world, run.sha).startswith(f"Headgate test: merge pr-{number} at ")
    change = QueueRequest({"shadow": False})
    await queues.update(world.runtime, await world.queue(), change, SYSTEM)
    await world.settle()
    assert await world.merged() == [number]
    assert "Merged" in world.comment_on(number)
    landed = await world.entry(number)
    assert landed.reason is Reason.LANDED
    assert message_of(world, landed.landed_sha).startswith("Merge pull request #")


async def test_an_answer_that_waits_when_the_shadow_begins_is_not_written(world: World) -> None:
    await world.make_queue(required_statuses=("unit",), create_prs_for_testing_branches=False)
    number = await world.open()
    for path in ("*/reactions", f"*/issues/{number}/comments"):
        await world.fault({"method": "POST", "path": path, "times": 24}, "fail_before", status=503)
    await world.comment("/merge status", on=number)
    await world.rest(10)
    change = QueueRequest({"shadow": True})
    await queues.update(world.runtime, await world.queue(), change, SYSTEM)
    await world.rest(300)
    await world.settle()
    assert world.comment_on(number) == ""
