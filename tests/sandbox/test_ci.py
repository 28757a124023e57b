"""Row Actions and the CI file: what starts, what it comes to, and when."""

import asyncio
import json
import os

import pytest

from bot.sandbox import ci, ci_file
from bot.sandbox.app import SandboxOptions, running
from bot.sandbox.refusal import Refusal
from bot.sandbox.world import WorkflowRun
from tests.sandbox.client import REPO


def runs_of(sandbox):
    repository = sandbox.repository(REPO)
    return [(run.event, run.head_branch, run.conclusion) for run in repository.workflow_runs]


RED = "triggers: {push: [main]}\nchecks: [{name: unit, rules: [{conclusion: failure}]}]"


async def set_ci(sandbox, text):
    """Put another CI file on main, without starting anything."""
    files = {".sandbox/ci.yml": text}
    given = {"branch": "main", "files": files, "message": "ci [skip ci]"}
    await sandbox.act("push", "alice", REPO, **given)


async def test_a_push_starts_ci_only_on_the_named_branches(sandbox):
    for branch in ("main", "other", "headgate/merge/pr-1/x", "headgate/temp/pr-1/x"):
        await sandbox.act("push", "bob", REPO, branch=branch, files={branch: "x"}, bypass=True)
    await sandbox.settle()
    assert runs_of(sandbox) == [
        ("push", "main", "success"),
        ("push", "headgate/merge/pr-1/x", "success"),
    ]


async def test_a_pull_request_starts_ci_drafts_included(sandbox):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, draft=True))["number"]
    await sandbox.settle()
    await sandbox.act("push", "bob", REPO, number=number, files={"c.txt": "c"})
    await sandbox.settle()
    assert runs_of(sandbox) == [("pull_request", "topic-1", "success")] * 2


async def test_a_conflicting_pull_request_starts_nothing(sandbox):
    opened = await sandbox.act("open", "bob", REPO, files={"app.py": "mine\n"})
    files = {"app.py": "yours\n"}
    await sandbox.act("push", "alice", REPO, branch="main", files=files, message="yours [skip ci]")
    await sandbox.settle()
    assert runs_of(sandbox) == []
    await sandbox.act("force_push", "bob", REPO, number=opened["number"], files={"a.txt": "a"})
    await sandbox.settle()
    assert runs_of(sandbox) == [("pull_request", "topic-1", "success")]


@pytest.mark.parametrize("marker", ["[skip ci]", "[ci skip]", "[no ci]", "[Skip Actions]"])
async def test_a_skip_marker_in_the_head_commit_starts_nothing(sandbox, marker):
    await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, message=f"Add a {marker}")
    await sandbox.settle()
    assert runs_of(sandbox) == []


async def test_a_pull_request_is_tested_as_merged_with_its_base(sandbox):
    await sandbox.act("push", "alice", REPO, branch="main", files={"a.txt": "a"})
    files = {"b.txt": "b"}
    await sandbox.act("open", "bob", REPO, files=files, **{"from": first_commit(sandbox)})
    await sandbox.settle()
    assert runs_of(sandbox)[-1] == ("pull_request", "topic-1", "failure")


def first_commit(sandbox):
    git = sandbox.repository(REPO).git
    return git.objects.log(git.branch("main"))[-1].sha


async def test_ci_takes_its_seconds_of_world_time(sandbox):
    await sandbox.act("push", "alice", REPO, branch="main", files={"x": "x"})
    before = sandbox.world.now()
    await sandbox.settle()
    assert (sandbox.world.now() - before).total_seconds() == 3


CONCLUSIONS = """
triggers: {{ push: ["**"] }}
checks:
  - name: unit
    kind: {kind}
    rules: [{{ {rule} conclusion: {conclusion} }}]
"""


@pytest.mark.parametrize("conclusion", ["failure", "timed_out", "skipped", "neutral", "cancelled"])
async def test_a_rule_decides_the_conclusion(sandbox, conclusion):
    await set_ci(sandbox, CONCLUSIONS.format(kind="check", rule="", conclusion=conclusion))
    sha = (await sandbox.act("push", "bob", REPO, branch="w", files={"x": "x"}))["sha"]
    await sandbox.settle()
    runs = sandbox.repository(REPO).check_runs(sha)
    assert [(run.name, run.conclusion) for run in runs] == [("unit", conclusion)]


@pytest.mark.parametrize(("conclusion", "count"), [("never", 0), ("hang", 1)])
async def test_a_check_may_never_start_or_never_end(sandbox, conclusion, count):
    await set_ci(sandbox, CONCLUSIONS.format(kind="check", rule="", conclusion=conclusion))
    sha = (await sandbox.act("push", "bob", REPO, branch="w", files={"x": "x"}))["sha"]
    await sandbox.settle()
    runs = sandbox.repository(REPO).check_runs(sha)
    assert [run.status for run in runs] == ["in_progress"] * count


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("exists: [x],", "failure"),
        ("exists: [x, none],", "success"),
        ("contains: { path: x, text: BROKEN },", "failure"),
        ("contains: { path: x, text: OTHER },", "success"),
        ('branch: "w*",', "failure"),
        ('branch: "v*",', "success"),
        ("flake: 1.0,", "failure"),
        ("flake: 0.0,", "success"),
    ],
)
async def test_the_conditions_of_a_rule(sandbox, rule, expected):
    await set_ci(sandbox, CONCLUSIONS.format(kind="check", rule=rule, conclusion="failure"))
    sha = (await sandbox.act("push", "bob", REPO, branch="w", files={"x": "BROKEN"}))["sha"]
    await sandbox.settle()
    assert [run.conclusion for run in sandbox.repository(REPO).check_runs(sha)] == [expected]


async def test_a_flake_is_drawn_anew_for_each_attempt(sandbox):
    rule = "flake: 0.5,"
    await set_ci(sandbox, CONCLUSIONS.format(kind="check", rule=rule, conclusion="failure"))
    await sandbox.act("push", "bob", REPO, branch="w", files={"x": "x"})
    await sandbox.settle()
    run = sandbox.repository(REPO).workflow_runs[-1]
    drawn = []
    for _ in range(12):
        drawn.append(run.conclusion)
        ci.rerun(sandbox.repository(REPO), run, failed_only=False)
        await sandbox.settle()
    assert set(drawn) == {"success", "failure"}


async def test_a_person_runs_the_failed_jobs_of_a_branch_again(sandbox):
    await set_ci(sandbox, RED)
    with pytest.raises(Refusal, match="no failed run of main"):
        await sandbox.act("rerun_ci", "bob", REPO, branch="main")
    await sandbox.act("push", "alice", REPO, branch="main", files={"a.txt": "a"}, bypass=True)
    await sandbox.settle()
    with pytest.raises(Refusal, match="may not rerun_ci"):
        await sandbox.act("rerun_ci", "carol", REPO, branch="main")
    await sandbox.act("rerun_ci", "bob", REPO, branch="main")
    await sandbox.settle()
    (run,) = sandbox.repository(REPO).workflow_runs
    assert (run.attempt, run.ended) == (2, {1: "failure", 2: "failure"})


async def test_a_status_is_pending_and_then_decided(sandbox):
    await set_ci(sandbox, CONCLUSIONS.format(kind="status", rule="", conclusion="error"))
    sha = (await sandbox.act("push", "bob", REPO, branch="w", files={"x": "x"}))["sha"]
    await sandbox.settle()
    statuses = sandbox.repository(REPO).statuses[sha]
    assert [(one.context, one.state) for one in statuses] == [
        ("unit", "pending"),
        ("unit", "error"),
    ]
    assert statuses[0].creator.login == "sandbox-ci[bot]"


@pytest.mark.parametrize(
    "text",
    ["checks: 3", "- a", "checks: [{ seconds: 1 }]", "surprise: 1", "checks: [{name: a, x: 1}]"],
)
async def test_a_file_that_breaks_the_grammar_is_a_startup_failure(sandbox, text):
    sha = (await sandbox.act("push", "bob", REPO, branch="w", files={".sandbox/ci.yml": text}))[
        "sha"
    ]
    await sandbox.settle()
    suites = sandbox.repository(REPO).suites[sha]
    assert [one.forced_conclusion for one in suites if one.app.slug == "sandbox-ci"] == [
        "startup_failure"
    ]
    assert ci_file.parse(text.encode()).error


async def test_another_app_reports_under_its_own_name(sandbox, app):
    text = "triggers: { push: ['**'] }\nchecks: [{ name: unit, app: other-ci }]\n"
    await set_ci(sandbox, text)
    sha = (await sandbox.act("push", "bob", REPO, branch="w", files={"x": "x"}))["sha"]
    await sandbox.settle()
    shown = await app.get(f"/repos/{REPO}/commits/{sha}/check-runs")
    assert [one["app"]["slug"] for one in shown["check_runs"]] == ["other-ci"]


async def test_a_run_is_cancelled_while_it_runs_and_not_after(sandbox, person):
    await sandbox.act("push", "alice", REPO, branch="main", files={"x": "x"})
    run = sandbox.repository(REPO).workflow_runs[0]
    path = f"/repos/{REPO}/actions/runs/{run.id}"
    assert (await person("bob").call("POST", f"{path}/rerun-failed-jobs", {})).status == 403
    assert (await person("bob").call("POST", f"{path}/cancel", {})).status == 202
    await sandbox.settle()
    assert run.conclusion == "cancelled"
    assert (await person("bob").call("POST", f"{path}/cancel", {})).status == 409


async def test_the_same_commit_pushed_and_proposed_is_tested_twice(sandbox, app):
    await sandbox.act("push", "bob", REPO, branch="headgate/merge/x", files={"c.txt": "c"})
    await sandbox.act("open", "bob", REPO, head="headgate/merge/x", draft=True)
    await sandbox.settle()
    assert [event for event, _, _ in runs_of(sandbox)] == ["push", "pull_request"]


RUN = """
triggers: {{ push: ["**"] }}
checks:
  - {{ name: real, run: {command}, timeout_s: {timeout_s} }}
"""


@pytest.mark.parametrize(
    ("command", "timeout_s", "conclusion", "text"),
    [
        ("cat x; echo $CI $GITHUB_REPOSITORY", 600, "success", "hello\ntrue octo/widgets\n"),
        ("echo bad; exit 3", 600, "failure", "bad\n"),
        ("cat /dev/zero >/dev/null", 0.5, "timed_out", ""),
    ],
)
async def test_a_command_runs_on_the_exported_commit(command, timeout_s, conclusion, text):
    async with running(SandboxOptions(is_manual=True, allow_commands=True)) as sandbox:
        await sandbox.seed(repositories=[{"full_name": REPO}])
        ci = RUN.format(command=json.dumps(command), timeout_s=timeout_s)
        files = {".sandbox/ci.yml": ci, "x": "hello\n"}
        sha = (await sandbox.act("push", "bob", REPO, branch="w", files=files))["sha"]
        await sandbox.settle()
        run = sandbox.repository(REPO).check_runs(sha)[0]
        assert (run.conclusion, run.text) == (conclusion, text)


async def test_a_command_ends_with_the_sandbox(tmp_path):
    said = tmp_path / "pid"
    os.mkfifo(said)
    ci = RUN.format(command=json.dumps(f"echo $$ > {said}; sleep 600"), timeout_s=600)
    async with running(SandboxOptions(allow_commands=True)) as sandbox:
        await sandbox.seed(repositories=[{"full_name": REPO}])
        await sandbox.act("push", "bob", REPO, branch="w", files={".sandbox/ci.yml": ci})
        shell = int(await asyncio.to_thread(said.read_text))
    with pytest.raises(ProcessLookupError):
        os.kill(shell, 0)


async def test_without_permission_no_command_runs(sandbox, tmp_path):
    trace = tmp_path / "ran"
    files = {".sandbox/ci.yml": RUN.format(command=json.dumps(f"touch {trace}"), timeout_s=600)}
    sha = (await sandbox.act("push", "bob", REPO, branch="w", files=files))["sha"]
    await sandbox.settle()
    run = sandbox.repository(REPO).check_runs(sha)[0]
    assert (run.conclusion, trace.exists()) == ("failure", False)
    assert "--allow-commands" in run.title


async def reports_on(app, sha):
    listed = (await app.get(f"/repos/{REPO}/commits/{sha}/check-runs?filter=all"))["check_runs"]
    return sorted((one["name"], one["conclusion"], one["check_suite"]["id"]) for one in listed)


async def open_with(sandbox, ci, files=None, **more):
    await sandbox.act("push", "alice", REPO, branch="main", files={".sandbox/ci.yml": ci})
    made = await sandbox.act("open", "bob", REPO, files=files or {"a.txt": "a"}, **more)
    await sandbox.settle()
    return made


GUARDED = """
triggers: { push: ["headgate/merge/**"], pull_request: true }
checks: [{ name: unit, skips_drafts: true }]
"""


async def test_a_guarded_job_is_skipped_on_drafts_and_runs_on_pushes(sandbox, app):
    made = await open_with(sandbox, GUARDED, draft=True)
    assert [one[:2] for one in await reports_on(app, made["head"])] == [("unit", "skipped")]
    await sandbox.act("draft", "bob", REPO, number=made["number"], draft=False)
    await sandbox.settle()
    assert len(await reports_on(app, made["head"])) == 1
    branch = {"branch": "headgate/merge/one", "from": made["head"], "files": {"b.txt": "b"}}
    pushed = await sandbox.act("push", "bob", REPO, **branch)
    await sandbox.settle()
    assert [one[:2] for one in await reports_on(app, pushed["sha"])] == [("unit", "success")]


async def test_a_job_with_a_path_filter_is_skipped_and_a_workflow_does_not_report(sandbox, app):
    job = "triggers: {pull_request: true}\nchecks: [{name: unit, paths: ['src/**']}]"
    made = await open_with(sandbox, job)
    assert [one[:2] for one in await reports_on(app, made["head"])] == [("unit", "skipped")]
    workflow = "triggers: {pull_request: true}\npaths: ['src/**']\nchecks: [{name: unit}]"
    made = await open_with(sandbox, workflow)
    assert await reports_on(app, made["head"]) == []
    made = await open_with(sandbox, workflow, {"src/a.py": "a"})
    assert [one[:2] for one in await reports_on(app, made["head"])] == [("unit", "success")]


DOUBLE = """
triggers: { push: ["work*"], pull_request: true }
delays: { pull_request: 20 }
checks: [{ name: unit, seconds: 3 }]
"""


async def test_two_triggers_make_two_suites_that_start_apart(sandbox, app):
    made = await open_with(sandbox, DOUBLE, head="work-1")
    reports = await reports_on(app, made["head"])
    assert [one[:2] for one in reports] == [("unit", "success")] * 2
    assert len({one[2] for one in reports}) == 2
    listed = await app.get(f"/repos/{REPO}/actions/runs?head_sha={made['head']}")
    begun = sorted(one["created_at"] for one in listed["workflow_runs"])
    assert begun[0] < begun[1]


async def test_a_skip_marker_leaves_a_required_check_expected(sandbox, app):
    rules = {"repo": REPO, "required_checks": ["unit"]}
    made = await open_with(sandbox, GUARDED, message="Fix [skip ci]")
    await sandbox.control.rules(rules)
    assert await reports_on(app, made["head"]) == []
    answer = await app.call("PUT", f"/repos/{REPO}/pulls/{made['number']}/merge", {})
    assert answer.status == 405
    assert 'Required status check "unit" is expected.' in answer.body["message"]


NEEDS = """\
triggers: {push: [main]}
checks:
  - {name: test (1), seconds: 5, rules: [{exists: [bad.txt], conclusion: failure}]}
  - {name: test (2), seconds: 20}
  - {name: odd, seconds: 5, continue-on-error: true, rules: [{conclusion: failure}]}
  - {name: pack, seconds: 3, needs: [test]}
  - {name: gate, seconds: 3, needs: [test, odd], if: always(),
     rules: [{needs_failed: true, conclusion: failure}]}
"""


async def ends_of_needs(sandbox, text=NEEDS, **files):
    """Conclusions by name after a push with these files, and the run."""
    await set_ci(sandbox, text)
    pushed = {name.replace("_", "."): text for name, text in files.items()} or {"x": "x"}
    await sandbox.act("push", "alice", REPO, branch="main", files=pushed)
    await sandbox.settle()
    run = sandbox.repository(REPO).workflow_runs[-1]
    return {job.name: job.conclusion for job in ci.latest_jobs(run)}, run


async def test_a_job_that_needs_others_begins_when_they_have_ended(sandbox):
    ends, run = await ends_of_needs(sandbox)
    jobs = {job.name: job for job in ci.latest_jobs(run)}
    assert ends["odd"] == "failure"
    assert run.conclusion == ends["gate"] == ends["pack"] == "success"
    assert jobs["pack"].started_at == jobs["test (2)"].completed_at


async def test_a_job_whose_needs_failed_is_skipped_unless_it_always_runs(sandbox):
    ends, run = await ends_of_needs(sandbox, bad_txt="x")
    assert ends["test (1)"] == ends["gate"] == run.conclusion == "failure"
    assert ends["pack"] == "skipped"
    jobs = {job.name: job for job in ci.latest_jobs(run)}
    assert jobs["gate"].started_at == jobs["test (2)"].completed_at


async def test_running_the_failed_jobs_again_runs_what_needs_them(sandbox):
    _, run = await ends_of_needs(sandbox, bad_txt="x")
    ci.rerun(sandbox.repository(REPO), run, failed_only=True)
    await sandbox.settle()
    assert [job.name for job in run.jobs[2]] == ["test (1)", "odd", "pack", "gate"]


async def test_a_cancelled_run_begins_nothing_that_waits(sandbox):
    await set_ci(sandbox, NEEDS)
    await sandbox.act("push", "alice", REPO, branch="main", files={"x": "x"})
    run = sandbox.repository(REPO).workflow_runs[-1]
    ci.cancel(sandbox.repository(REPO), run)
    await sandbox.settle()
    assert {job.name for job in ci.latest_jobs(run)} == {"test (1)", "test (2)", "odd"}
    assert run.conclusion == "cancelled"


AGAIN = """\
triggers: {push: ["**"]}
checks:
  - {name: build, seconds: 5}
  - {name: lint, seconds: 1}
  - name: unit
    needs: [build]
    rules: [{attempt: 1, conclusion: failure}]
  - {name: pack, needs: [unit]}
  - {name: all, needs: [lint, unit, pack], if: always(),
     rules: [{needs_failed: true, conclusion: failure}]}
"""


async def needing(sandbox) -> WorkflowRun:
    """A run of these jobs in which one failed."""
    await set_ci(sandbox, AGAIN)
    await sandbox.act("push", "bob", REPO, branch="w", files={"x": "x"})
    await sandbox.settle()
    run = sandbox.repository(REPO).workflow_runs[-1]
    assert run.conclusion == "failure"
    return run


def ended(run: WorkflowRun, attempt: int) -> dict[str, str | None]:
    """The conclusions of the jobs of an attempt, in the order in which they started."""
    return {job.name: job.conclusion for job in run.jobs[attempt]}


async def test_a_job_starts_after_those_that_it_needs_and_is_skipped_if_one_fails(sandbox):
    run = await needing(sandbox)
    first = {"build": "success", "lint": "success", "unit": "failure"}
    assert ended(run, 1) == {**first, "pack": "skipped", "all": "failure"}


async def test_failed_jobs_run_again_with_those_that_need_them_and_the_others_are_kept(sandbox):
    run = await needing(sandbox)
    ids = {job.name: job.id for job in run.jobs[1]}
    ci.rerun(sandbox.repository(REPO), run, failed_only=True)
    await sandbox.settle()
    assert ended(run, 2) == {"unit": "success", "pack": "success", "all": "success"}
    assert (run.attempt, run.conclusion) == (2, "success")
    latest = {job.name: job.id for job in ci.latest_jobs(run)}
    assert {name for name, id_ in latest.items() if id_ == ids[name]} == {"build", "lint"}


async def test_one_job_runs_again_with_those_that_need_it(sandbox):
    run = await needing(sandbox)
    (pack,) = [job for job in run.jobs[1] if job.name == "pack"]
    ci.rerun_jobs(sandbox.repository(REPO), run, [pack])
    await sandbox.settle()
    assert ended(run, 2) == {"pack": "skipped", "all": "failure"}


async def test_a_job_must_follow_those_that_it_needs(sandbox):
    text = "triggers: {push: ['**']}\nchecks: [{name: a, needs: [b]}, {name: b}]\n"
    assert "list the checks that it needs before it" in (ci_file.parse(text.encode()).error or "")


async def test_a_job_that_fails_fast_cancels_the_rest_of_its_matrix(sandbox):
    fast = NEEDS.replace("test (1), seconds", "test (1), fail-fast: true, seconds")
    assert (await ends_of_needs(sandbox, fast))[0]["test (2)"] == "success"
    ends, run = await ends_of_needs(sandbox, fast, bad_txt="x")
    jobs = {job.name: job for job in ci.latest_jobs(run)}
    assert (ends["test (1)"], ends["test (2)"]) == ("failure", "cancelled")
    assert jobs["gate"].started_at == jobs["test (1)"].completed_at
    assert ends["gate"] == run.conclusion == "failure"


async def test_only_a_job_of_a_matrix_fails_fast(sandbox):
    text = "triggers: {push: ['**']}\nchecks: [{name: a, fail-fast: true}]\n"
    assert "only a job of a matrix fails fast" in (ci_file.parse(text.encode()).error or "")


ATTEMPTS = """\
triggers: {push: ["**"]}
checks:
  - {name: whole, rules: [{attempt: 1, conclusion: failure}]}
  - {name: by step, steps: [{name: run, rules: [{attempt: 1, conclusion: failure}]}]}
  - name: by test
    reports: {artifact: r, tests: [{name: t, rules: [{attempt: 1, conclusion: failure}]}]}
"""


async def test_a_rule_of_an_attempt_holds_in_no_other(sandbox):
    await set_ci(sandbox, ATTEMPTS)
    await sandbox.act("push", "bob", REPO, branch="w", files={"x": "x"})
    await sandbox.settle()
    run = sandbox.repository(REPO).workflow_runs[-1]
    assert set(ended(run, 1).values()) == {"failure"}
    ci.rerun(sandbox.repository(REPO), run, failed_only=True)
    await sandbox.settle()
    assert ended(run, 2) == dict.fromkeys(ended(run, 1), "success")


async def test_only_a_job_itself_looks_at_those_that_it_needs(sandbox):
    rules = "[{needs_failed: true, conclusion: failure}]"
    text = f"checks: [{{name: a, steps: [{{name: run, rules: {rules}}}]}}]"
    assert "only a rule of a job itself has needs_failed" in (
        ci_file.parse(text.encode()).error or ""
    )
