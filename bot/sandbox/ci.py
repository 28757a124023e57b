"""The sandbox's own CI: `.sandbox/ci.yml` of the tested commit's tree, played in world time.

Decides what starts and how it ends; reports go through reports.py. Triggers as at GitHub: `push`
by branch pattern, `pull_request` also for drafts but never while the pull request conflicts,
neither with a skip marker in the head commit's message.

Commands of checks run on an exported commit, only with `--allow-commands`: in a temporary folder,
with a bare environment, in a process group of its own that is killed at the timeout. Nothing else
of the sandbox starts a foreign program.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from bot.sandbox import artifacts, ci_file, deliver, job_tokens, reports, standing
from bot.sandbox.ci_file import CheckPlan, Plan
from bot.sandbox.git import Objects
from bot.sandbox.records import Account, Actor, App, CheckRun, Step
from bot.sandbox.shapes import checks
from bot.sandbox.world import PullRequest, Repository, WorkflowRun, World

OUTPUT_MAX = 1 << 20
REPORT_MAX = 64 << 20
SHOWN_MAX = 60_000  # a check run's text holds 65,535 characters
SYMLINK_MODE = "120000"


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command, and the report file that it wrote, None without one."""

    conclusion: str
    title: str
    text: str
    report: bytes | None = None


async def _run_command(
    repository: Repository, run_of_ci: WorkflowRun, plan: CheckPlan, own: Mapping[str, str]
) -> Done:
    """Run the command of a check on its commit; `own` are variables of its job alone."""
    if not repository.world.allow_commands or plan.run is None:
        message = "commands are off; start the sandbox with --allow-commands"
        return Done("failure", message, message)
    async with repository.world.command_places:
        with tempfile.TemporaryDirectory(prefix="sandbox-ci-") as folder:
            # What is read is kept, by one thread for itself.
            apart = Objects(repository.git.objects.folder)
            await asyncio.to_thread(export, apart, run_of_ci.tested_sha, Path(folder))
            environment = {**_environment(repository, run_of_ci), **own}
            done = await _shell(plan.run, Path(folder), environment, plan.timeout_s)
            return replace(done, report=_report(Path(folder), plan.junit))


def _report(folder: Path, name: str | None) -> bytes | None:
    """The file of that name, if the command wrote one inside its folder."""
    if name is None:
        return None
    path = (folder / name).resolve()
    is_there = path.is_relative_to(folder.resolve()) and path.is_file()
    return path.read_bytes()[:REPORT_MAX] if is_there else None


def export(objects: Objects, commit: str, folder: Path) -> None:
    """Write the files of a commit into an empty folder."""
    for path, item in objects.walk(commit):
        target = folder / path
        if item.kind == "tree":
            target.mkdir()
        elif item.mode == SYMLINK_MODE:
            target.symlink_to((objects.blob(item.sha) or b"").decode())
        elif item.kind == "blob":
            target.write_bytes(objects.blob(item.sha) or b"")
            target.chmod(0o755 if item.mode == "100755" else 0o644)


def _environment(repository: Repository, run_of_ci: WorkflowRun) -> dict[str, str]:
    passed = {name: os.environ[name] for name in repository.world.pass_env if name in os.environ}
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": tempfile.gettempdir(),
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": run_of_ci.event,
        "GITHUB_SHA": run_of_ci.tested_sha,
        "GITHUB_REF": f"refs/heads/{run_of_ci.head_branch}",
        "GITHUB_REPOSITORY": repository.full_name,
        "GITHUB_RUN_ID": str(run_of_ci.id),
        "GITHUB_RUN_ATTEMPT": str(run_of_ci.attempt),
        **passed,
    }


async def _shell(command: str, folder: Path, environment: dict[str, str], timeout_s: float) -> Done:
    child = await asyncio.create_subprocess_shell(
        command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_s):
            output = await _read(child)
            code = await child.wait()
    except TimeoutError:
        return Done("timed_out", f"no end after {timeout_s:g} s", "")
    finally:
        await _end(child)
    text = output.decode(errors="replace")[-SHOWN_MAX:]
    if code == 0:
        return Done("success", "exit code 0", text)
    return Done("failure", f"exit code {code}", text)


async def _end(child: asyncio.subprocess.Process) -> None:
    """End a command that still runs, at its timeout or when the sandbox stops."""
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


async def _read(child: asyncio.subprocess.Process) -> bytes:
    output = b""
    if child.stdout is not None:
        while part := await child.stdout.read(OUTPUT_MAX):
            output = (output + part)[-OUTPUT_MAX:]
    return output


CI_SLUG = "sandbox-ci"
SKIP_MARKERS = ("[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]")


@dataclass(frozen=True, slots=True)
class Trigger:
    """The reason to start CI: the event, the commit it reports on and the one it tests."""

    event: str
    branch: str
    head_sha: str
    tested_sha: str
    head_repo: Repository
    actor: Account
    pulls: tuple[int, ...] = ()
    is_draft: bool = False


def _ci_app(world: World, slug: str = CI_SLUG) -> App:
    """The App that reports CI results; another slug is another App, made when first named."""
    permissions = {"checks": "write", "statuses": "write"}
    return world.apps.get(slug) or world.add_app(slug, permissions, [])


def on_push(repository: Repository, branch: str, sha: str, actor: Account) -> None:
    """Start what a pushed branch triggers."""
    plan = ci_file.read(repository.git.objects, sha)
    if plan is not None and plan.runs_on_push(branch):
        _start(repository, plan, Trigger("push", branch, sha, sha, repository, actor))


def on_pull(pull: PullRequest, test_merge: str) -> None:
    """Start what a pull request triggers, on its clean test merge."""
    plan = ci_file.read(pull.repository.git.objects, test_merge)
    if plan is not None and plan.triggers.pull_request:
        trigger = Trigger(
            "pull_request",
            pull.head_ref,
            pull.head_sha,
            test_merge,
            pull.head_repo,
            pull.author,
            (pull.number,),
            pull.draft,
        )
        _start(pull.repository, plan, trigger)


def _start(repository: Repository, plan: Plan, trigger: Trigger) -> None:
    """Make the workflow run and its checks after the delay of the file.

    Nothing is made, and nothing reports, where the head commit says to skip CI or no changed
    file matches the file's path filter.
    """
    head = repository.git.objects.a_commit(trigger.head_sha)
    if any(marker in head.message.lower() for marker in SKIP_MARKERS):
        return
    if plan.paths and not ci_file.touches(plan.paths, _changed(repository, trigger.tested_sha)):
        return
    delay_s = plan.delays.get(trigger.event, 0.0)
    if not delay_s:
        _begin(repository, plan, trigger)
        return

    async def begin_later() -> None:
        _begin(repository, plan, trigger)

    name = f"CI of {repository.full_name} for {trigger.event}"
    repository.world.timeline.later(delay_s, name, begin_later)


def _changed(repository: Repository, sha: str) -> set[str]:
    """The paths that a commit changes against the default branch, or against its parent."""
    objects = repository.git.objects
    tip = repository.git.branch(repository.default_branch)
    start = objects.merge_base(tip, sha) if tip is not None else None
    if start == sha:
        parents = objects.a_commit(sha).parents
        start = parents[0] if parents else None
    return {path for path, _, _ in objects.changed(start, sha)}


def _begin(repository: Repository, plan: Plan, trigger: Trigger) -> None:
    now = repository.world.now()
    suite = reports.new_suite(
        repository, _ci_app(repository.world), trigger.head_sha, trigger.branch
    )
    run = WorkflowRun(
        id=repository.world.new_id("run"),
        number=len(repository.workflow_runs) + 1,
        suite=suite,
        event=trigger.event,
        head_sha=trigger.head_sha,
        tested_sha=trigger.tested_sha,
        head_branch=trigger.branch,
        head_repo=trigger.head_repo,
        pulls=list(trigger.pulls),
        actor=trigger.actor,
        created_at=now,
        updated_at=now,
        begun={1: now},
        is_draft=trigger.is_draft,
        path=plan.workflow,
    )
    repository.workflow_runs.append(run)
    _announce(repository, run, "requested")
    if plan.error is not None:
        suite.forced_conclusion = "startup_failure"
        _finish(repository, run, "startup_failure")
        return
    _begin_attempt(repository, run, plan.checks)


def _begin_attempt(repository: Repository, run: WorkflowRun, planned: Iterable[CheckPlan]) -> None:
    """Start checks of a run under its present attempt number."""
    run.status, run.conclusion = "in_progress", None
    run.updated_at = run.begun[run.attempt] = repository.world.now()
    jobs = run.jobs.setdefault(run.attempt, [])
    run.waiting = [plan.name for plan in planned]
    _begin_ready(repository, run)
    _announce(repository, run, "in_progress")
    if not jobs:
        close_when_done(repository, run)


def _begin_ready(repository: Repository, run: WorkflowRun) -> None:
    """Begin the waiting checks whose needed jobs have all ended; skip those that one stops."""
    read = ci_file.read(repository.git.objects, run.tested_sha)
    plans = () if read is None else read.checks
    is_moving = True
    while is_moving:
        is_moving = False
        for plan in [one for one in plans if one.name in run.waiting]:
            needed = _needed(run, plan)
            if needed is None:
                continue
            run.waiting.remove(plan.name)
            is_moving = True
            is_stopped = not (needed <= {"success"} or plan.condition)
            conclusion = "skipped" if is_stopped else _conclusion(repository, run, plan, needed)
            if conclusion != "never":
                begin = _begin_check if plan.kind == "check" else _begin_status
                begin(repository, run, plan, conclusion)


def _needed(run: WorkflowRun, plan: CheckPlan) -> set[str] | None:
    """Return how the jobs that a check needs have ended; None while one has not."""
    if any(ci_file.is_meant(name, other) for name in plan.needs for other in run.waiting):
        return None
    jobs = [
        job
        for job in latest_jobs(run)
        if any(ci_file.is_meant(name, job.name) for name in plan.needs)
    ]
    if any(job.status != "completed" for job in jobs):
        return None
    return {"success" if job.id in run.forgiven else job.conclusion or "" for job in jobs}


def _conclusion(
    repository: Repository, run: WorkflowRun, plan: CheckPlan, needed: Collection[str]
) -> str:
    if run.is_draft and plan.skips_drafts:
        return "skipped"
    if plan.paths and not ci_file.touches(plan.paths, _changed(repository, run.tested_sha)):
        return "skipped"
    draw = f"{repository.world.seed}:{run.head_sha}:{plan.name}:{run.attempt}"
    has_failed = any(word != "success" for word in needed)
    rules = tuple(
        rule
        for rule in ci_file.of_attempt(plan.rules, run.attempt)
        if has_failed or not rule.needs_failed
    )
    ruled = ci_file.conclusion_of(
        repository.git.objects, rules, run.tested_sha, run.head_branch, draw
    )
    if ruled == "success" and artifacts.failing_tests(repository, run, plan):
        return "failure"
    return ruled


def _begin_check(
    repository: Repository, run: WorkflowRun, plan: CheckPlan, conclusion: str
) -> None:
    suite = run.suite
    app = _ci_app(repository.world, plan.app)
    if app is not suite.app:
        suite = reports.suite_of(repository, app, run.head_sha, run.head_branch)
    fields = {"name": plan.name, "status": "in_progress"}
    check = reports.add_run(repository, suite, Actor(app.bot, app), fields)
    check.runner, check.failed_steps = plan.runner, plan.failed_steps
    check.attempt = run.attempt
    run.jobs[run.attempt].append(check)
    if plan.may_fail:
        run.forgiven.add(check.id)
    if conclusion == "skipped" and plan.needs:
        # A job that does not begin, because one that it needs has not succeeded, takes no time.
        actor = Actor(check.suite.app.bot, check.suite.app)
        reports.change_run(repository, check, actor, {"conclusion": conclusion})
        return
    seconds = plan.seconds
    if plan.steps:
        check.steps = _steps(repository, run, plan)
        seconds = (check.steps[-1].ends_at - check.steps[0].begins_at).total_seconds()
        if any(step.conclusion == "failure" for step in check.steps):
            conclusion = "failure"
    if conclusion != "hang":
        word = "failure" if conclusion == "error" else conclusion
        name = f"CI check {plan.name} of {repository.full_name}"
        end = partial(_end_check, repository, run, (check, plan), word)
        repository.world.timeline.later(0.0 if plan.run else seconds, name, end)


def _steps(repository: Repository, run: WorkflowRun, plan: CheckPlan) -> tuple[Step, ...]:
    """Return the steps of a job that begins now, with their ends."""
    found: list[Step] = []
    at, has_failed = repository.world.now(), False
    for step in plan.steps:
        if has_failed and not step.condition:
            found.append(Step(step.name, at, at, "skipped"))
            continue
        draw = f"{repository.world.seed}:{run.head_sha}:{plan.name}:{step.name}:{run.attempt}"
        rules = ci_file.of_attempt(step.rules, run.attempt)
        ruled = ci_file.conclusion_of(
            repository.git.objects, rules, run.tested_sha, run.head_branch, draw
        )
        conclusion = "success" if step.may_fail else ruled
        has_failed = has_failed or conclusion == "failure"
        ends_at = at + timedelta(seconds=step.seconds)
        found.append(Step(step.name, at, ends_at, conclusion))
        at = ends_at
    return tuple(found)


async def _end_check(
    repository: Repository, run: WorkflowRun, ending: tuple[CheckRun, CheckPlan], conclusion: str
) -> None:
    check, plan = ending
    fields: dict[str, object] = {}
    written = None
    if plan.run is not None and check.status != "completed":
        own = job_tokens.environment_of(repository, run, check) if plan.sends else {}
        done = await _run_command(repository, run, plan, own)
        conclusion, written = done.conclusion, done.report
        fields["output"] = {"title": done.title, "summary": done.title, "text": done.text}
    if check.status == "completed":
        return
    if not plan.sends or await _send(repository, run, ending, written):
        artifacts.leave_reports(repository, run, plan, written)
    if check.status == "completed":
        return
    fields.update(status="completed", conclusion=conclusion)
    actor = Actor(check.suite.app.bot, check.suite.app)
    reports.change_run(repository, check, actor, fields)
    if plan.fails_fast and conclusion == "failure":
        _cancel_matrix_of(repository, run, check)
    close_when_done(repository, run)


def _cancel_matrix_of(repository: Repository, run: WorkflowRun, failed: CheckRun) -> None:
    """Cancel the jobs of the matrix of a failed one that have not ended; they began with it."""
    name = ci_file.matrix_of(failed.name)
    jobs = (job for job in run.jobs[run.attempt] if ci_file.matrix_of(job.name) == name)
    _cancel_jobs(repository, jobs)


async def _send(
    repository: Repository,
    run: WorkflowRun,
    ending: tuple[CheckRun, CheckPlan],
    written: bytes | None,
) -> str:
    """Send the reports of a job that ends; return why one was not accepted, else nothing."""
    check, plan = ending
    files = artifacts.reports_of(repository, run, plan, written)
    refusals = [await job_tokens.send(repository, run, check, each) for each in files]
    return "\n".join(filter(None, refusals))


def _begin_status(
    repository: Repository, run: WorkflowRun, plan: CheckPlan, conclusion: str
) -> None:
    bot = _ci_app(repository.world, plan.app).bot
    new = reports.NewStatus(plan.name, "pending", f"{plan.name} is running")
    reports.add_status(repository, run.head_sha, bot, new)
    state = "success" if conclusion in ("success", "neutral", "skipped") else conclusion
    state = state if state in reports.STATES else "failure"

    async def end() -> None:
        done = reports.NewStatus(plan.name, state, f"{plan.name}: {state}")
        reports.add_status(repository, run.head_sha, bot, done)

    if conclusion != "hang":
        repository.world.timeline.later(plan.seconds, f"CI status {plan.name}", end)


def close_when_done(repository: Repository, run: WorkflowRun) -> None:
    """Start the jobs of a run whose needs have ended, and end it if all of its jobs have."""
    if run.status != "completed" and run.waiting:
        _begin_ready(repository, run)
    jobs = run.jobs.get(run.attempt, [])
    is_open = run.waiting or any(job.status != "completed" for job in jobs)
    if run.status == "completed" or is_open:
        return
    conclusions = {job.conclusion or "" for job in latest_jobs(run) if job.id not in run.forgiven}
    order = ("failure", "timed_out", "action_required", "cancelled", "stale")
    _finish(repository, run, next((word for word in order if word in conclusions), "success"))


def latest_jobs(run: WorkflowRun) -> list[CheckRun]:
    """The jobs of the last attempt of each name, by id; one attempt may have several of a name."""
    return standing.latest([job for attempt in sorted(run.jobs) for job in run.jobs[attempt]])


def _finish(repository: Repository, run: WorkflowRun, conclusion: str) -> None:
    run.status, run.conclusion, run.updated_at = "completed", conclusion, repository.world.now()
    run.ended[run.attempt] = conclusion
    _announce(repository, run, "completed")


def _announce(repository: Repository, run: WorkflowRun, action: str) -> None:
    fields = {
        "workflow_run": checks.workflow_run(repository, run),
        "workflow": checks.workflow(repository, run.path),
    }
    deliver.emit(repository, "workflow_run", action, fields, run.actor)


def cancel(repository: Repository, run: WorkflowRun) -> None:
    """Cancel what still runs; a run that is over stays as it is."""
    if run.status == "completed":
        return
    run.waiting.clear()
    _cancel_jobs(repository, run.jobs.get(run.attempt, []))
    _finish(repository, run, "cancelled")


def _cancel_jobs(repository: Repository, jobs: Iterable[CheckRun]) -> None:
    for job in jobs:
        if job.status != "completed":
            actor = Actor(job.suite.app.bot, job.suite.app)
            fields = {"status": "completed", "conclusion": "cancelled"}
            reports.change_run(repository, job, actor, fields)


def _needs_any(plan: CheckPlan, others: Iterable[CheckPlan]) -> bool:
    return any(ci_file.is_meant(name, each.name) for name in plan.needs for each in others)


def rerun(repository: Repository, run: WorkflowRun, *, failed_only: bool) -> None:
    """Start a run again as its next attempt, in the same suite with new check runs.

    Earlier artifacts are removed when everything runs again (actions/upload-artifact 323).
    """
    if failed_only:
        rerun_jobs(repository, run, failed_jobs(run))
        return
    plan = _plan_again(repository, run)
    if plan is not None:
        run.artifacts.clear()
        run.attempt += 1
        _begin_attempt(repository, run, plan.checks)


def failed_jobs(run: WorkflowRun) -> list[CheckRun]:
    """The jobs of a run that have not succeeded, without those that were skipped."""
    return [job for job in latest_jobs(run) if job.conclusion not in ("success", "skipped")]


def rerun_jobs(repository: Repository, run: WorkflowRun, jobs: Iterable[CheckRun]) -> None:
    """Start these jobs and those that need them as the next attempt; the others are kept.

    https://docs.github.com/en/actions/how-tos/manage-workflow-runs/re-run-workflows-and-jobs
    """
    plan = _plan_again(repository, run)
    if plan is None:
        return
    names = {job.name for job in jobs}
    chosen = [one for one in plan.checks if one.name in names]
    for one in plan.checks:
        # The file lists a job after those that it needs.
        if one not in chosen and _needs_any(one, chosen):
            chosen.append(one)
    run.attempt += 1
    _begin_attempt(repository, run, chosen)


def _plan_again(repository: Repository, run: WorkflowRun) -> Plan | None:
    plan = ci_file.read(repository.git.objects, run.tested_sha)
    return None if plan is None or plan.error is not None else plan
