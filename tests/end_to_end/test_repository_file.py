"""The settings in `.github/headgate.yml` of the target branch, from a push to a test run."""

from pathlib import Path

import pytest

from service.accounts.store import access
from service.mergequeue.operations import (
    file_checks,
    queues,
    reconcile,
    replaying,
    repository_files,
)
from service.mergequeue.operations.file_checks import CheckRepositoryFile
from service.mergequeue.operations.repository_files import FilesRead
from service.vocabulary import SYSTEM, Role, Sha
from tests.harness.asking import Asker, asker
from tests.harness.world import CI, World, WorldOptions

FILE = ".github/headgate.yml"
TRUNK = ".trunk/trunk.yaml"

VALID = """\
version: 1
queues:
  main:
    concurrency: 3
    requiredStatuses: [lint]
"""
BROKEN = """\
version: 1
queues:
  main:
    concurency: 7
    batch: maybe
"""
LINT = "  - {name: lint, seconds: 3}\n"


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    return WorldOptions(ci=CI + LINT, required=getattr(request, "param", ("unit",)))


async def push(world: World, files: dict[str, str | None]) -> None:
    await world.act("push", by="alice", branch="main", files=files, bypass=True)
    await world.settle()


async def at_work(world: World, **settings) -> Asker:
    asking = await asker(world)
    await world.make_queue(**settings)
    return asking


async def test_the_file_sets_the_queue_and_says_so(world: World):
    admin = await at_work(world, concurrency=5)
    before = await admin.done("getQueue")
    assert before["repositoryFile"] is None
    assert before["settingSources"]["concurrency"] == "API"
    await push(world, {FILE: VALID})
    queue = await admin.done("getQueue")
    assert queue["concurrency"] == 3
    sources = queue["settingSources"]
    named = ("concurrency", "requiredStatuses", "bisectionConcurrency", "batch")
    assert [sources[name] for name in named] == ["FILE", "FILE", "API", "DEFAULT"]
    assert queue["effectiveRequiredStatuses"] == ["unit", "lint"]
    assert queue["requiredStatusesSource"] == "vendor_config"
    assert queue["repositoryFile"]["faults"] == []
    assert queue["version"] > before["version"]


async def test_a_run_is_tested_by_the_statuses_of_the_file(world: World):
    admin = await at_work(world)
    await push(world, {FILE: VALID})
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]
    run = (await admin.done("getSubmittedPullRequest", number))["verifiedByTestRun"]
    shown = await admin.done("getMergeQueueTestingDetails", testRunId=run)
    assert shown["requiredStatuses"] == ["unit", "lint"]
    assert shown["requiredStatusesSource"] == "vendor_config"


@pytest.mark.parametrize("world_options", [()], indirect=True)
async def test_without_required_checks_the_first_merge_names_the_file_that_then_allows_it(
    world: World,
):
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert f"`requiredStatuses` in `{FILE}`" in world.comment_on(number)
    await push(world, {FILE: VALID})
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]


async def test_the_api_cannot_change_what_the_file_sets(world: World):
    admin = await at_work(world)
    await push(world, {FILE: VALID})
    version = (await admin.done("getQueue"))["version"]
    status, answer = await admin.post("updateQueue", concurrency=9, batch=True)
    assert (status, answer["code"]) == (422, "set_in_repository_file")
    assert answer["detail"] == (
        ".github/headgate.yml on main sets concurrency. "
        "Change the file on that branch, or remove the setting there."
    )
    assert (await admin.done("getQueue"))["version"] == version
    assert (await admin.done("updateQueue", batch=True))["batch"] is True


async def test_what_the_file_no_longer_sets_has_its_value_from_before(world: World):
    admin = await at_work(world, concurrency=5)
    await push(world, {FILE: VALID})
    await admin.done("updateQueue", testingTimeoutMinutes=60)
    await push(world, {FILE: None})
    queue = await admin.done("getQueue")
    assert (queue["concurrency"], queue["testingTimeoutMinutes"]) == (5, 60)
    assert queue["settingSources"]["concurrency"] == "API"
    assert queue["repositoryFile"] is None
    assert queue["effectiveRequiredStatuses"] == ["unit"]
    assert queue["requiredStatusesSource"] == "repo_provider_branch_protection"


async def test_a_broken_file_changes_nothing_and_is_shown(world: World):
    admin = await at_work(world)
    await push(world, {FILE: VALID})
    good = await admin.done("getQueue")
    await push(world, {FILE: BROKEN})
    queue = await admin.done("getQueue")
    shown = queue.pop("repositoryFile")
    changed = {name for name in queue if queue[name] != good[name]}
    assert changed == {"version", "recordVersion"}
    assert shown["goodCommit"] == good["repositoryFile"]["commit"] != shown["commit"]
    assert shown["faults"] == [
        {
            "path": FILE,
            "line": 4,
            "field": "queues.main.concurency",
            "message": "`queues.main.concurency` is not a setting of a queue. "
            "Did you mean `concurrency`?",
        },
        {
            "path": FILE,
            "line": 5,
            "field": "queues.main.batch",
            "message": "`queues.main.batch` must be true or false.",
        },
    ]
    await push(world, {FILE: VALID.replace("3", "4")})
    queue = await admin.done("getQueue")
    assert (queue["concurrency"], queue["repositoryFile"]["faults"]) == (4, [])


async def test_a_new_queue_begins_with_the_file(world: World):
    await push(world, {FILE: VALID})
    admin = await asker(world)
    made = await admin.done("createQueue", concurrency=8, batch=True)
    assert (made["concurrency"], made["batch"]) == (3, True)
    assert made["ignoredFields"] == ["concurrency"]
    assert made["requiredStatusesSource"] == "vendor_config"


async def test_the_statuses_of_a_trunk_file_count_if_ours_has_none(world: World):
    admin = await at_work(world)
    trunk = "version: 0.1\nmerge:\n  required_statuses:\n    - lint\nlint: {enabled: [ruff]}\n"
    await push(world, {TRUNK: trunk})
    queue = await admin.done("getQueue")
    assert queue["effectiveRequiredStatuses"] == ["unit", "lint"]
    assert queue["requiredStatusesSource"] == "vendor_config"
    assert queue["repositoryFile"]["requiredPath"] == TRUNK
    status, answer = await admin.post("updateQueue", requiredStatuses=["unit"])
    assert (status, answer["code"]) == (422, "set_in_repository_file")
    assert TRUNK in answer["detail"]
    await push(world, {FILE: VALID.replace("[lint]", "[unit]")})
    queue = await admin.done("getQueue")
    assert queue["effectiveRequiredStatuses"] == ["unit"]
    assert queue["repositoryFile"]["requiredPath"] == FILE


async def test_the_sweep_finds_a_push_that_was_never_heard_of(world: World):
    admin = await at_work(world)
    await world.fault({"event": "push"}, "drop")
    await push(world, {FILE: VALID})
    assert (await admin.done("getQueue"))["concurrency"] == 5
    await reconcile.read_all_queues(world.runtime)
    queue = await admin.done("getQueue")
    assert queue["concurrency"] == 3
    await reconcile.read_all_queues(world.runtime)
    world.runtime.memory.of(FilesRead).clear()
    await reconcile.read_all_queues(world.runtime)
    assert await admin.done("getQueue") == queue


async def test_the_file_of_a_pull_request_changes_nothing(world: World):
    admin = await at_work(world)
    await world.open(files={FILE: VALID})
    await world.open(files={FILE: VALID}, fork=True, by="carol")
    await world.settle()
    await reconcile.read_all_queues(world.runtime)
    queue = await admin.done("getQueue")
    assert (queue["concurrency"], queue["repositoryFile"]) == (5, None)


@pytest.mark.parametrize("world_options", [()], indirect=True, ids=["nothing required"])
async def test_the_first_merge_makes_a_queue_by_the_statuses_of_the_file(world: World):
    reader = await asker(world, Role.READ)
    await push(world, {FILE: VALID})
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]
    assert (await reader.done("getQueue"))["settingSources"]["concurrency"] == "FILE"


def config_checks(world: World, number: int) -> list[tuple[str, str, str]]:
    """Conclusion, title and summary of our checks of the file on a pull request's head."""
    pull = world.repository.issues[number].pull
    assert pull is not None
    runs = world.repository.check_runs(pull.head_sha)
    found = [one for one in runs if one.name == "Headgate config"]
    return [(str(one.conclusion), str(one.title), str(one.summary)) for one in found]


async def test_a_pull_request_with_a_broken_file_shows_each_fault(world: World):
    await at_work(world)
    number = await world.open(files={FILE: BROKEN})
    await world.settle()
    ((conclusion, title, summary),) = config_checks(world, number)
    assert (conclusion, title) == ("failure", "2 faults in .github/headgate.yml")
    assert "- Line 4: `queues.main.concurency is not a setting of a queue. " in summary
    assert "- Line 5: `queues.main.batch must be true or false.`" in summary
    await world.act("push", number=number, files={FILE: VALID})
    await world.settle()
    ((conclusion, title, summary),) = config_checks(world, number)
    assert (conclusion, title) == ("success", "2 settings change in the queue for main")
    assert "| `concurrency` | `5` | `3` |" in summary
    assert "there is none to replay" in summary


async def test_a_pull_request_that_changes_settings_shows_the_replay(world: World):
    await at_work(world)
    landed = [await world.open() for _ in range(3)]
    for number in landed:
        await world.comment("/merge", on=number)
    await world.settle()
    assert sorted(await world.merged()) == landed
    text = "version: 1\nqueues: {main: {concurrency: 1}}\n"
    number = await world.open(files={FILE: text})
    await world.settle()
    ((conclusion, title, summary),) = config_checks(world, number)
    assert (conclusion, title) == ("success", "1 setting changes in the queue for main")
    assert "The submissions of the last 30 days (3), replayed" in summary
    assert "| Merged | 3 | 3 |" in summary


async def test_only_the_pull_request_that_changes_the_file_is_checked(world: World):
    await at_work(world)
    await push(world, {FILE: VALID})
    plain = await world.open()
    fork = await world.open(files={FILE: BROKEN}, fork=True, by="carol")
    removing = await world.open(files={FILE: "version: 1\n"}, fresh=True)
    await world.settle()
    assert config_checks(world, plain) == []
    assert config_checks(world, fork) == []
    ((conclusion, title, _),) = config_checks(world, removing)
    assert (conclusion, title) == ("success", "2 settings change in the queue for main")


async def test_a_check_under_way_when_the_shadow_begins_is_not_written(world: World):
    await at_work(world)
    await world.fault({"method": "GET", "path": f"*/contents/{FILE}"}, "hang", s=8)
    number = await world.open(files={FILE: BROKEN})
    await world.until(lambda: _hangs(world))
    change = queues.QueueRequest({"shadow": True})
    await queues.update(world.runtime, await world.queue(), change, SYSTEM)
    await world.settle()
    assert config_checks(world, number) == []


async def _hangs(world: World) -> bool:
    return bool(world.sandbox.world.faults.listed[-1].struck)


async def test_a_method_that_the_repository_forbids_is_a_fault(world: World):
    admin = await at_work(world)
    text = "version: 1\nqueues:\n  main:\n    mergeMethod: REBASE\n"
    world.repository.settings.rebase = False
    await reconcile.read_all_queues(world.runtime)
    await push(world, {FILE: text})
    (fault,) = (await admin.done("getQueue"))["repositoryFile"]["faults"]
    assert fault["line"] == 4
    assert "is not allowed by the repository. Allowed: MERGE_COMMIT, SQUASH." in fault["message"]


async def test_the_command_line_applies_a_file_and_compares_it(world: World, tmp_path: Path):
    admin = await at_work(world)
    path = tmp_path / "headgate.yml"
    path.write_text("version: 1\nqueues: {main: {concurrency: 4, hedging: SPARE_SLOTS}}\n")
    planned = await admin.headgate("queue", "apply", str(path), "--branch", "main", "--dry-run")
    assert "concurrency  5      4            API" in planned
    assert (await admin.done("getQueue"))["concurrency"] == 5
    await admin.headgate("queue", "apply", str(path), "--branch", "main")
    same = "The queue for main has the settings of the file\n"
    assert await admin.headgate("queue", "apply", str(path), "--branch", "main") == same
    assert await admin.headgate("config", "diff", str(path), "--branch", "main") == same
    assert (await admin.done("getQueue"))["hedging"] == "SPARE_SLOTS"


async def test_a_file_that_is_too_large_is_a_fault(world: World):
    admin = await at_work(world)
    await push(world, {FILE: "#" * 300_000})
    number = await world.open(files={FILE: "#" * 300_001})
    await world.settle()
    ((conclusion, title, summary),) = config_checks(world, number)
    assert (conclusion, title) == ("failure", "1 fault in .github/headgate.yml")
    assert "300,001 bytes, more than 262,144" in summary
    (fault,) = (await admin.done("getQueue"))["repositoryFile"]["faults"]
    assert (fault["line"], fault["path"]) == (None, FILE)


async def test_a_fault_of_a_trunk_file_is_shown_by_its_name(world: World):
    admin = await at_work(world)
    await push(world, {TRUNK: "merge:\n  required_statuses: [3]\n"})
    (fault,) = (await admin.done("getQueue"))["repositoryFile"]["faults"]
    assert (fault["line"], fault["path"]) == (2, TRUNK)
    await push(world, {TRUNK: "lint: {}\n"})
    assert (await admin.done("getQueue"))["repositoryFile"] is None


async def test_the_kind_of_test_branch_of_the_file_comes_and_goes(world: World):
    admin = await at_work(world)
    kind = (await admin.done("getQueue"))["testBranchKind"]
    other = {"PUSH": "true", "DRAFT_PR": "false"}[kind]
    await push(
        world, {FILE: f"version: 1\nqueues: {{main: {{createPrsForTestingBranches: {other}}}}}\n"}
    )
    queue = await admin.done("getQueue")
    assert queue["testBranchKind"] != kind
    assert queue["testBranchKindReason"].startswith(
        "Chosen by the setting createPrsForTestingBranches."
    )
    await push(world, {FILE: None})
    queue = await admin.done("getQueue")
    assert queue["testBranchKind"] == kind
    assert not queue["testBranchKindReason"].startswith(
        "Chosen by the setting createPrsForTestingBranches."
    )


async def test_a_file_that_changes_nothing_in_force_says_so(world: World):
    await at_work(world)
    same = await world.open(files={FILE: "version: 1\nqueues: {main: {concurrency: 5}}\n"})
    words = await world.open(files={FILE: "version: 1\nqueues: {main: {forkPolicy: DENY}}\n"})
    await world.settle()
    ((_, title, _),) = config_checks(world, same)
    assert title == "No setting changes"
    ((_, _, summary),) = config_checks(world, words)
    assert "do not change how long the queue takes" in summary


@pytest.mark.parametrize("limit", [("WAIT_S", 0), ("COMMAND", ("false",))], ids=["late", "ended"])
async def test_a_replay_that_takes_too_long_is_left_to_the_command_line(
    world: World, monkeypatch: pytest.MonkeyPatch, limit
):
    await at_work(world)
    await world.comment("/merge", on=await world.open())
    await world.settle()
    monkeypatch.setattr(replaying, *limit)
    number = await world.open(files={FILE: "version: 1\nqueues: {main: {concurrency: 1}}\n"})
    await world.settle()
    ((conclusion, _, summary),) = config_checks(world, number)
    assert conclusion == "success"
    assert "`headgate simulate` can do it on another machine." in summary


async def test_a_check_for_a_queue_that_is_gone_is_dropped(world: World):
    admin = await at_work(world)
    number = await world.open(files={FILE: BROKEN})
    await world.settle()
    repository = (await world.queue()).repository_id
    await admin.done("deleteQueue")
    wanted = CheckRepositoryFile(number, Sha("c" * 40), "main")
    await file_checks.check(world.runtime, repository, wanted, first=True)
    assert len(config_checks(world, number)) == 1


async def test_a_branch_that_is_gone_leaves_the_queue_as_it_was(world: World):
    admin = await at_work(world)
    await push(world, {FILE: VALID})
    await world.act("push", by="alice", branch="old", files={FILE: VALID.replace("main", "old")})
    await admin.done("createQueue", targetBranch="old")
    await world.act("delete_branch", by="alice", branch="old")
    await world.settle()
    await repository_files.look(world.runtime, await world.queue("old"), is_touched=True)
    assert (await admin.done("getQueue", targetBranch="old"))["concurrency"] == 3
    record = await world.runtime.store.read(access.repository, (await world.queue()).repository_id)
    assert await repository_files.future_override(world.runtime, record, "old") is None


async def test_a_kind_of_test_branch_set_by_hand_is_back_when_the_file_drops_it(world: World):
    admin = await at_work(world, create_prs_for_testing_branches=False)
    await push(world, {FILE: "version: 1\nqueues: {main: {createPrsForTestingBranches: true}}\n"})
    assert (await admin.done("getQueue"))["testBranchKind"] == "DRAFT_PR"
    await push(world, {FILE: None})
    queue = await admin.done("getQueue")
    assert queue["testBranchKind"] == "PUSH"
    assert queue["testBranchKindReason"].startswith(
        "Chosen by the setting createPrsForTestingBranches."
    )


async def test_a_list_of_none_leaves_the_rules_of_the_branch(world: World):
    admin = await at_work(world, required_statuses=("lint",))
    await push(world, {FILE: "version: 1\nqueues: {main: {requiredStatuses: []}}\n"})
    queue = await admin.done("getQueue")
    assert queue["effectiveRequiredStatuses"] == ["unit"]
    assert queue["requiredStatusesSource"] == "repo_provider_branch_protection"
    await push(world, {TRUNK: "x" * 300_000, FILE: None})
    (fault,) = (await admin.done("getQueue"))["repositoryFile"]["faults"]
    assert fault["path"] == TRUNK
