"""Planted misconfigurations: the doctor names each, and its words say how to mend it.

Each test plants one fault, finds it over HTTP, and does what `mend` says. Where the sandbox
lands nothing, or something else, because of the fault, a pull request lands at the end.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from bot import wiring
from bot.github import live
from bot.sandbox.acts import seeds
from bot.sandbox.app import EVENTS, PERMISSIONS
from service.provider import audits
from service.vocabulary import MergeMethod, RepoRef
from tests.harness import asking
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker
from tests.harness.receiver import receiving
from tests.harness.world import CI, REPO, World, WorldOptions, settings_for

WORKFLOW = ".github/workflows/ci.yml"
GROUP = "${{ github.workflow }}-${{ github.ref }}"
QUICK = CI.replace("seconds: 3", "seconds: 0.1")
"""While a command runs, time in the world passes no faster than outside."""
SILENT = CI.replace('push: ["headgate/merge/**"], pull_request: true', "pull_request: false")
PUSHED = CI.replace("pull_request: true", "pull_request: false")
SKIPPING = CI.replace('push: ["headgate/merge/**"], ', "").replace(
    "    seconds: 3\n", "    seconds: 3\n    skips_drafts: true\n"
)


def workflow(on: str, job: str = "", top: str = "") -> str:
    """A workflow with the job `unit`."""
    return f"on:\n{on}\n{top}jobs:\n  unit:\n    runs-on: x\n{job}    steps: []\n"


ON_PULLS = "  pull_request: {branches: [main]}"
ON_BOTH = f'{ON_PULLS}\n  push: {{branches: ["headgate/merge/**"]}}'


async def push(world: World, files: dict[str, str | None]) -> None:
    """Commit to `main`, as an owner does."""
    await world.act("push", by="alice", branch="main", files=files, bypass=True)
    await world.settle()


def set_rules(world: World, **rules: Any) -> None:
    """Change settings or rules, as an owner does on the repository's pages."""
    seeds.set_rules(world.repository, rules)


async def findings(doctor: Asker) -> list[dict[str, str]]:
    """The findings about `main`."""
    found: list[dict[str, str]] = (await doctor.done("runDoctor"))["findings"]
    return found


async def named(doctor: Asker, audit: str, severity: str = "error") -> dict[str, str]:
    """The worst finding of this audit, which must be as bad as this."""
    found = [one for one in await findings(doctor) if one["audit"] == audit]
    assert found[0]["severity"] == severity, found
    return found[0]


async def is_mended(doctor: Asker, audit: str) -> None:
    """The audit has nothing to say any more."""
    assert (await named(doctor, audit, "ok"))["mend"] == ""


async def submitted(world: World) -> int:
    """A new pull request, submitted and at rest."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    return number


async def lands(world: World) -> None:
    """A new pull request lands."""
    number = await submitted(world)
    assert await world.merged() == [number], await world.entry(number)


async def test_a_healthy_repository_has_no_error(world: World) -> None:
    await world.make_queue()
    await lands(world)
    doctor = await asking.asker(world)
    answer = await doctor.done("runDoctor")
    assert [one for one in answer["findings"] if one["severity"] == "error"] == []
    assert answer["passed"]
    order = [one["severity"] for one in answer["findings"]]
    assert order == sorted(order, key=["error", "warning", "note", "ok"].index)


def test_a_command_to_paste_runs_nothing_that_a_branch_is_called() -> None:
    branch = "release;$(reboot)"
    command = audits.command("create", RepoRef(asking.HOST, "octo", "widgets"), branch)
    words = ["headgate", "queue", "create", "--repo", "octo/widgets", "--branch", branch]
    assert shlex.split(command.strip("`")) == words


@pytest.mark.parametrize("proof", ["RUN", "TOKEN"])
async def test_reports_of_other_jobs_are_believed(world: World, proof: str) -> None:
    await world.make_queue()
    doctor = await asking.asker(world)
    await is_mended(doctor, "proof-of-reports")
    await ci.settle_tests(doctor, "update-settings", excuse_proof=proof)
    found = await named(doctor, "proof-of-reports", "warning")
    assert f"`excuse_proof` is `{proof}`" in found["found"]
    await doctor.paste(found["mend"][found["mend"].index("`headgate tests") :])
    await is_mended(doctor, "proof-of-reports")


async def test_a_branch_without_a_queue(world: World) -> None:
    doctor = await asking.asker(world)
    await doctor.paste((await named(doctor, "queue-state", "note"))["mend"])
    await is_mended(doctor, "queue-state")
    await lands(world)


async def test_a_dry_test_before_the_first_test_branch(world: World) -> None:
    await push(world, {".sandbox/ci.yml": QUICK})
    await world.make_queue()
    doctor = await asking.asker(world)
    mend = (await named(doctor, "checks-on-test-branches", "note"))["mend"]
    assert "`unit` reported on the test branch and passed." in await doctor.paste(mend)


async def test_a_queue_that_is_paused_and_held(world: World) -> None:
    await world.make_queue()
    doctor = await asking.asker(world)
    await doctor.headgate("queue", "pause", "--reason", "release")
    await doctor.headgate("queue", "hold", "--reason", "audit")
    found = [one for one in await findings(doctor) if one["audit"] == "queue-state"]
    assert len(found) == 2
    for one in found:
        await doctor.paste(one["mend"])
    await is_mended(doctor, "queue-state")
    await lands(world)


async def test_a_missing_permission(world: World) -> None:
    await world.make_queue()
    lacking = {**PERMISSIONS, "contents": "read"}
    await world.act("permissions", by="alice", permissions=lacking)
    doctor = await asking.asker(world)
    found = await named(doctor, "app-permissions")
    assert "asks for `contents: write`, but this installation grants read" in found["found"]
    assert found["mend"].startswith("An owner must accept the new permissions at http")
    await world.act("permissions", by="alice", permissions=PERMISSIONS)
    await world.settle()
    await lands(world)


async def test_a_permission_that_the_app_itself_does_not_ask_for(world: World) -> None:
    await world.make_queue()
    lacking = {**PERMISSIONS, "checks": "read"}
    world.sandbox.app.permissions = lacking
    await world.act("permissions", by="alice", permissions=lacking)
    doctor = await asking.asker(world)
    found = await named(doctor, "app-permissions")
    assert "registration asks for read to `checks` and needs write" in found["found"]
    assert (
        "/settings/apps/headgate, then “Permissions & events”, set `Checks: write`"
        in (found["mend"])
    )
    assert "Then an owner accepts it at http" in found["mend"]


async def test_a_suspended_installation(world: World) -> None:
    await world.make_queue()
    await world.act("suspend", by="alice")
    doctor = await asking.asker(world)
    assert "unsuspend it" in (await named(doctor, "installation"))["mend"]
    await world.act("suspend", by="alice", suspended=False)
    await is_mended(doctor, "installation")
    await lands(world)


async def test_an_event_that_is_not_subscribed(world: World) -> None:
    await world.make_queue()
    without = [one for one in EVENTS if one != "issue_comment"]
    await world.act("events", by="alice", events=without)
    doctor = await asking.asker(world)
    mend = (await named(doctor, "app-events"))["mend"]
    event = re.search(r"subscribe to `(\w+)`", mend)
    assert event
    await world.act("events", by="alice", events=[*without, event[1]])
    await is_mended(doctor, "app-events")
    await lands(world)


async def test_deliveries_that_do_not_arrive(world: World) -> None:
    await world.make_queue()
    right = str(world.sandbox.world.webhook_url)
    await world.sandbox.control.webhook({"url": "http://127.0.0.1:9/elsewhere"})
    await push(world, {"x.txt": "x"})
    doctor = await asking.asker(world)
    found = await named(doctor, "webhook")
    assert "failed to connect" in found["found"]
    assert "set the webhook URL" in found["mend"]
    async with receiving() as refusing:
        refusing.answers = [503]
        await world.sandbox.control.webhook({"url": refusing.url})
        await push(world, {"z.txt": "z"})
        found = await named(doctor, "webhook")
        assert "503" in found["found"]
        assert "Mend first what `service` and `database` name here." in found["mend"]
    await world.sandbox.control.webhook({"url": right})
    await push(world, {"y.txt": "y"})
    assert "The newest one did" in (await named(doctor, "webhook", "warning"))["found"]
    await lands(world)


async def test_strict_checks(world: World) -> None:
    await world.make_queue()
    parameters = {
        "required_status_checks": [{"context": "unit"}],
        "strict_required_status_checks_policy": True,
    }
    rule = {"type": "required_status_checks", "parameters": parameters}
    set_rules(world, rulesets=[{"name": "required", "rules": [rule]}])
    doctor = await asking.asker(world)
    mend = (await named(doctor, "strict-checks"))["mend"]
    assert mend.startswith("In the ruleset `required`, turn off “Require branches to be up to date")
    parameters["strict_required_status_checks_policy"] = False
    set_rules(world, rulesets=[{"name": "required", "rules": [rule]}])
    await is_mended(doctor, "strict-checks")
    await lands(world)


async def test_a_required_check_of_no_app(world: World) -> None:
    await world.make_queue()
    await lands(world)
    doctor = await asking.asker(world)
    found = await named(doctor, "status-sources", "note")
    app = world.sandbox.world.apps["sandbox-ci"]
    assert "everybody with write access can set it" in found["found"]
    assert f"choose App {app.id} ({app.name}) as source of `unit`" in found["mend"]
    pinned = {"context": "unit", "integration_id": app.id}
    rule = {"type": "required_status_checks", "parameters": {"required_status_checks": [pinned]}}
    set_rules(world, required_checks=[], rulesets=[{"name": "pinned", "rules": [rule]}])
    await is_mended(doctor, "status-sources")


async def test_a_check_that_passes_on_heads_and_fails_on_test_branches(world: World) -> None:
    rules = '    rules: [{branch: "headgate/**", conclusion: failure}]\n'
    title = f"  - name: pr-title\n    seconds: 1\n{rules}"
    await push(world, {".sandbox/ci.yml": CI + title})
    set_rules(world, required_checks=["unit", "pr-title"])
    await world.make_queue()
    numbers = [await world.open(fresh=True) for _ in range(2)]
    await world.settle()
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    doctor = await asking.asker(world)
    await doctor.paste((await named(doctor, "checks-of-heads", "warning"))["mend"])
    await is_mended(doctor, "checks-of-heads")
    await world.settle()
    assert await world.merged() == numbers


async def test_approvals_that_a_new_base_dismisses(world: World) -> None:
    await world.make_queue()
    doctor = await asking.asker(world)
    rule = {"checks": ["unit"], "approvals": 1, "dismiss_stale": True}
    set_rules(world, protection={"main": rule})
    found = await named(doctor, "review-rules", "note")
    assert "refuses chains that are no stack on GitHub" in found["found"]
    set_rules(world, protection={"main": {**rule, "dismiss_stale": False}})
    await is_mended(doctor, "review-rules")


async def test_linear_history_under_merge_commits(world: World) -> None:
    await world.make_queue(merge_method=MergeMethod.MERGE_COMMIT)
    rule = {"type": "required_linear_history"}
    set_rules(world, rulesets=[{"name": "tidy", "rules": [rule]}])
    doctor = await asking.asker(world)
    found = await named(doctor, "merge-method")
    assert "“Require linear history” in the ruleset `tidy`" in found["found"]
    await doctor.paste(found["mend"])
    await is_mended(doctor, "merge-method")
    await lands(world)


async def test_a_merge_method_that_the_repository_excludes(world: World) -> None:
    await world.make_queue(merge_method=MergeMethod.SQUASH)
    set_rules(world, settings={"squash": False})
    doctor = await asking.asker(world)
    assert "turn on “Allow squash merging”" in (await named(doctor, "merge-method"))["mend"]
    set_rules(world, settings={"squash": True})
    await is_mended(doctor, "merge-method")
    await lands(world)


async def test_settings_of_the_repositorys_file_are_mended_there(world: World) -> None:
    await push(world, {".sandbox/ci.yml": CI, WORKFLOW: workflow(ON_PULLS)})
    await world.make_queue()
    head = "version: 1\nqueues:\n  main:\n    "
    settings = "mergeMethod: MERGE_COMMIT\n    createPrsForTestingBranches: false\n"
    await push(world, {".github/headgate.yml": head + settings})
    set_rules(world, rulesets=[{"name": "tidy", "rules": [{"type": "required_linear_history"}]}])
    doctor = await asking.asker(world)
    for audit in ("merge-method", "test-branch-kind"):
        mend = (await named(doctor, audit))["mend"]
        assert "queue update" not in mend
        wanted = re.search(r"rite `([^`]+)` into `.github/headgate.yml` on `main`", mend)
        assert wanted
        name = wanted[1].partition(":")[0]
        settings = re.sub(f"{name}: .*", wanted[1], settings)
        await push(world, {".github/headgate.yml": head + settings})
        await is_mended(doctor, audit)
    await lands(world)


async def test_a_fault_of_the_repositorys_file(world: World) -> None:
    await world.make_queue()
    await push(world, {".github/headgate.yml": "version: 1\nqueue: {}\n"})
    doctor = await asking.asker(world)
    found = (await named(doctor, "repository-file", "warning"))["found"]
    assert "Did you mean `queues`? (.github/headgate.yml, line 2)" in found
    await push(world, {".github/headgate.yml": "version: 1\nqueues: {}\n"})
    await is_mended(doctor, "repository-file")


async def test_the_providers_own_queue(world: World) -> None:
    await world.make_queue()
    rules = [{"type": "merge_queue", "parameters": {}}]
    set_rules(world, rulesets=[{"name": "native", "rules": rules}])
    doctor = await asking.asker(world)
    mend = (await named(doctor, "provider-queue"))["mend"]
    assert mend == "In the ruleset `native`, turn off “Require merge queue”."
    errors = [one["audit"] for one in await findings(doctor) if one["severity"] == "error"]
    assert errors == ["provider-queue"]
    set_rules(world, rulesets=[{"name": "native", "delete": True}])
    await is_mended(doctor, "provider-queue")
    await lands(world)


async def test_a_branch_that_the_app_may_not_update(world: World) -> None:
    await world.make_queue()
    closed = {"name": "closed", "rules": [{"type": "update"}]}
    set_rules(world, rulesets=[closed])
    doctor = await asking.asker(world)
    mend = (await named(doctor, "closed-branch"))["mend"]
    assert mend == "In the ruleset `closed`, add the App `headgate` to the bypass list."
    await is_mended(doctor, "enforcement")
    set_rules(world, rulesets=[{**closed, "bypass_app": True}])
    await is_mended(doctor, "closed-branch")
    await is_mended(doctor, "enforcement")
    await lands(world)


async def test_push_restrictions_without_the_app(world: World) -> None:
    await world.make_queue()
    set_rules(world, protection={"main": {"checks": ["unit"], "pushers": ["alice"]}})
    doctor = await asking.asker(world)
    assert "add the App `headgate` under" in (await named(doctor, "closed-branch"))["mend"]
    pushers = ["alice", "headgate"]
    set_rules(world, protection={"main": {"checks": ["unit"], "pushers": pushers}})
    await is_mended(doctor, "closed-branch")
    await lands(world)


async def test_a_rule_that_also_binds_test_branches(world: World) -> None:
    await world.make_queue()
    everywhere: dict[str, Any] = {"name": "all", "include": ["~ALL"]}
    everywhere["rules"] = [{"type": "required_linear_history"}]
    set_rules(world, rulesets=[everywhere])
    doctor = await asking.asker(world)
    mend = (await named(doctor, "test-branch-rules"))["mend"]
    pattern = re.search(r"In the ruleset `all`, exclude the branches `(.+?)` by pattern", mend)
    assert pattern
    set_rules(world, rulesets=[{**everywhere, "exclude": [f"refs/heads/{pattern[1]}"]}])
    await is_mended(doctor, "test-branch-rules")
    await lands(world)


async def test_a_branch_in_the_way(world: World) -> None:
    await world.make_queue()
    await world.act("push", by="alice", branch="headgate", files={"x": "x"})
    doctor = await asking.asker(world)
    mend = (await named(doctor, "branch-names"))["mend"]
    branch = re.search(r"git push origin --delete (\S+)`", mend)
    assert branch
    await world.act("delete_branch", by="alice", branch=branch[1])
    await is_mended(doctor, "branch-names")
    await lands(world)


async def test_a_settings_file_of_another_queue(world: World) -> None:
    await world.make_queue()
    await push(world, {".mergify.yml": "queue_rules: []\n"})
    doctor = await asking.asker(world)
    mend = (await named(doctor, "other-queues", "warning"))["mend"]
    assert mend.startswith("Delete `.mergify.yml`")
    await push(world, {".mergify.yml": None, "rust-bors.toml": "timeout = 60\n"})
    assert "`rust-bors.toml`" in (await named(doctor, "other-queues", "warning"))["found"]
    await push(world, {"rust-bors.toml": None, ".trunk/trunk.yaml": "version: 0.1\n"})
    mend = (await named(doctor, "other-queues", "note"))["mend"]
    assert mend.endswith("`headgate import` takes over the file.")
    await push(world, {".trunk/trunk.yaml": None})
    await is_mended(doctor, "other-queues")


async def test_a_required_check_that_no_ci_reports(world: World) -> None:
    await world.make_queue()
    set_rules(world, required_checks=["unit", "tpyo"])
    await world.open()
    await world.settle()
    doctor = await asking.asker(world)
    found = await named(doctor, "checks-on-pull-requests")
    assert "`tpyo` has not reported" in found["found"]
    assert "correct it in the required checks" in found["mend"]
    set_rules(world, required_checks=["unit"])
    await is_mended(doctor, "checks-on-pull-requests")
    await lands(world)


async def test_ci_that_starts_on_pushes_under_a_queue_of_drafts(world: World) -> None:
    on = '  push: {branches: ["headgate/merge/**"]}'
    await push(world, {".sandbox/ci.yml": CI, WORKFLOW: workflow(on)})
    await world.make_queue(create_prs_for_testing_branches=True)
    doctor = await asking.asker(world)
    mend = (await named(doctor, "test-branch-kind"))["mend"]
    await doctor.paste(mend)
    await is_mended(doctor, "test-branch-kind")
    await lands(world)


async def test_a_workflow_that_skips_drafts(world: World) -> None:
    guard = "    if: github.event.pull_request.draft == false\n"
    await push(world, {".sandbox/ci.yml": SKIPPING, WORKFLOW: workflow(ON_PULLS, guard)})
    await world.make_queue(create_prs_for_testing_branches=True)
    doctor = await asking.asker(world)
    mend = (await named(doctor, "workflow-drafts"))["mend"]
    assert f'In `{WORKFLOW}`, add `push: {{branches: ["headgate/merge/**"]}}`' in mend
    mended = SKIPPING.replace("triggers: {", 'triggers: {push: ["headgate/merge/**"], ')
    await push(world, {".sandbox/ci.yml": mended, WORKFLOW: workflow(ON_BOTH, guard)})
    await doctor.paste(mend)
    await is_mended(doctor, "workflow-drafts")
    await lands(world)


async def test_a_workflow_that_does_not_start_on_test_branches(world: World) -> None:
    silent = CI.replace('push: ["headgate/merge/**"], ', "")
    await push(world, {".sandbox/ci.yml": silent, WORKFLOW: workflow("  push: {branches: [main]}")})
    await world.make_queue(create_prs_for_testing_branches=False)
    doctor = await asking.asker(world)
    mend = (await named(doctor, "workflow-triggers"))["mend"]
    assert mend == f'In `{WORKFLOW}`, add `push: {{branches: ["headgate/merge/**"]}}` under `on:`.'
    await push(world, {".sandbox/ci.yml": CI, WORKFLOW: workflow(ON_BOTH)})
    await is_mended(doctor, "workflow-triggers")
    await lands(world)


async def test_workflows_for_the_other_kind_of_test_branch_have_one_mend(world: World) -> None:
    await push(world, {".sandbox/ci.yml": CI, WORKFLOW: workflow(ON_PULLS)})
    await world.make_queue(create_prs_for_testing_branches=False)
    doctor = await asking.asker(world)
    await named(doctor, "test-branch-kind")
    await is_mended(doctor, "workflow-triggers")


async def test_a_concurrency_group_of_all_test_branches(world: World) -> None:
    top = "concurrency: {group: ci, cancel-in-progress: true}\n"
    await push(world, {WORKFLOW: workflow(ON_BOTH, top=top)})
    await world.make_queue()
    doctor = await asking.asker(world)
    mend = (await named(doctor, "workflow-concurrency"))["mend"]
    assert f"set the group to `{GROUP}`" in mend
    await push(world, {WORKFLOW: workflow(ON_BOTH, top=top.replace("ci,", f'"{GROUP}",'))})
    await is_mended(doctor, "workflow-concurrency")


async def test_a_path_filter_on_a_required_check(world: World) -> None:
    filtered = f"paths: [src/**]\n{CI}"
    on = ON_BOTH.replace("[main]", "[main], paths: [src/**]")
    await push(world, {".sandbox/ci.yml": filtered, WORKFLOW: workflow(on)})
    await world.make_queue()
    doctor = await asking.asker(world)
    mend = (await named(doctor, "workflow-paths"))["mend"]
    assert f"In `{WORKFLOW}`, remove `paths`" in mend
    await push(world, {".sandbox/ci.yml": CI, WORKFLOW: workflow(ON_BOTH)})
    await is_mended(doctor, "workflow-paths")
    await lands(world)


async def test_a_branch_that_requires_nothing(world: World) -> None:
    set_rules(world, required_checks=[])
    await world.make_queue()
    doctor = await asking.asker(world)
    found = await named(doctor, "required-statuses")
    await doctor.paste(found["mend"].replace("NAME,NAME", "unit"))
    await is_mended(doctor, "required-statuses")
    await lands(world)


async def test_a_required_check_that_test_branches_never_have(world: World) -> None:
    on_pulls = CI.replace('push: ["headgate/merge/**"], ', "")
    await push(world, {".sandbox/ci.yml": on_pulls})
    await world.make_queue(create_prs_for_testing_branches=False, check_start_timeout_minutes=1)
    await submitted(world)
    assert await world.merged() == []
    doctor = await asking.asker(world)
    found = await named(doctor, "checks-on-test-branches")
    assert "`unit` has not reported on the last" in found["found"]
    assert 'on pushes (`on: push: branches: ["headgate/merge/**"]`)' in found["mend"]
    await push(world, {".sandbox/ci.yml": CI})
    number = await submitted(world)
    assert number in await world.merged()
    await is_mended(doctor, "checks-on-test-branches")


async def test_a_repository_without_draft_pull_requests(world: World) -> None:
    on_pulls = CI.replace('push: ["headgate/merge/**"], ', "")
    await push(world, {".sandbox/ci.yml": on_pulls, WORKFLOW: workflow(ON_PULLS)})
    set_rules(world, settings={"drafts": False})
    await world.make_queue(check_start_timeout_minutes=1)
    await submitted(world)
    doctor = await asking.asker(world)
    found = await named(doctor, "test-branch-kind")
    assert found["found"].startswith("The provider refused a draft pull request")
    assert 'on pushes (`on: push: branches: ["headgate/merge/**"]`)' in found["mend"]
    await push(world, {".sandbox/ci.yml": CI, WORKFLOW: workflow(ON_BOTH)})
    number = await submitted(world)
    assert number in await world.merged()
    assert (await named(doctor, "test-branch-kind", "note"))["mend"] == ""


async def test_the_dry_test_reports_and_leaves_nothing(world: World) -> None:
    await world.make_queue()
    doctor = await asking.asker(world)
    made = await doctor.done("startDryTest", timeoutMinutes=5)
    assert made["branch"] in world.branches()
    assert len(world.open_pulls()) == 1
    await world.settle()
    about = {"branch": made["branch"], "sha": made["sha"]}
    seen = await doctor.done("getDryTest", **about)
    assert (seen["over"], seen["passed"]) == (True, True)
    assert "`unit` reported on the test branch and passed" in seen["findings"][0]["found"]
    await doctor.done("endDryTest", branch=made["branch"])
    await doctor.done("endDryTest", branch=made["branch"])
    assert [one for one in world.branches() if one.startswith("headgate/")] == []
    assert world.open_pulls() == []


async def test_the_dry_test_names_a_check_that_does_not_report(world: World) -> None:
    await push(world, {".sandbox/ci.yml": SILENT})
    await world.make_queue()
    doctor = await asking.asker(world)
    made = await doctor.done("startDryTest", timeoutMinutes=1)
    await world.rest(70)
    seen = await doctor.done("getDryTest", branch=made["branch"], sha=made["sha"])
    assert (seen["over"], seen["passed"]) == (True, False)
    assert "`unit` did not report on the test branch" in seen["findings"][0]["found"]
    await doctor.done("endDryTest", branch=made["branch"])
    await push(world, {".sandbox/ci.yml": CI})
    await lands(world)


async def test_a_dry_test_that_nobody_ended_is_removed_by_the_sweep(world: World) -> None:
    await world.make_queue()
    doctor = await asking.asker(world)
    made = await doctor.done("startDryTest", timeoutMinutes=1)

    async def is_gone() -> bool:
        return made["branch"] not in world.branches()

    await world.until(is_gone)
    assert world.open_pulls() == []


async def test_only_branches_of_dry_tests_can_be_ended(world: World) -> None:
    await world.make_queue()
    doctor = await asking.asker(world)
    status, answer = await doctor.post("endDryTest", branch="main")
    assert (status, answer["code"]) == (404, "dry_test_not_found")
    assert "main" in world.branches()


async def test_the_command_prints_groups_and_ends_by_errors(world: World) -> None:
    await push(world, {".sandbox/ci.yml": QUICK})
    await world.make_queue()
    doctor = await asking.asker(world)
    printed = await doctor.headgate("doctor", REPO, "--dry-test")
    assert "Errors" not in printed
    assert printed.index("Notes (") < printed.index("In order (")
    assert "dry-test: `unit` reported on the test branch and passed." in printed
    set_rules(world, rulesets=[{"name": "closed", "rules": [{"type": "update"}]}])
    with pytest.raises(AssertionError):
        await doctor.headgate("doctor", REPO)


async def test_the_live_checks_confirm_what_the_sandbox_does_and_leave_nothing(
    world: World, tmp_path: Path
) -> None:
    await world.make_queue()
    settings = settings_for(tmp_path, world.sandbox, WorldOptions())
    client = wiring.live_client(settings, RepoRef(asking.HOST, *REPO.split("/")), world.clock)
    found = {}
    async for one in live.confirm(client, "main", "probe"):
        found[one.audit] = (one.severity.value, one.found)
    await client.github.close()
    assert found.keys() == live.CHECKS.keys()
    assert {severity for severity, _ in found.values()} == {"ok"}, found
    assert [one for one in world.branches() if one.startswith("headgate/")] == []
    assert world.open_pulls() == []
