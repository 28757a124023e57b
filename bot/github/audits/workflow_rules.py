"""Audits of workflow files: which required checks run on test branches, and how."""

from collections.abc import Iterator

from bot.github import workflows
from bot.github.audits.facts import RepositoryFacts
from bot.github.workflow_files import Workflow
from bot.github.workflow_jobs import WorkflowJob
from service.provider import audits
from service.provider.audits import Finding, audit, error, note, warning
from service.provider.values import Vehicle
from service.vocabulary import ELSEWHERE


@audit(
    "workflow-triggers",
    "The workflows of required checks start on test branches, as far as files tell.",
)
def workflow_triggers(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each required check that no starting workflow reports.

    A file that cannot be read may report any check, so beside one nothing is an error. Where the
    workflows need the other kind of test branch, the audit `test-branch-kind` says how to
    choose it, and nothing here asks for another trigger.
    """
    if facts.workflows.trouble:
        yield note(facts.workflows.trouble)
    for each in facts.workflows.unread:
        yield note(
            f"Headgate cannot read `{each.name}` and cannot tell whether its checks start on test "
            f"branches. {each.why}",
        )
    if workflows.advice_of(facts.workflows).vehicle not in (None, facts.subject.vehicle):
        return
    for check in facts.subject.required:
        those = [each for each in facts.workflows.found if each.reports(check.name)]
        if not those or facts.workflows.unread or any(starts(facts, one) for one in those):
            continue
        if check.name in facts.subject.ran:
            continue  # seen there, so another CI reports it
        if any(workflow_drafts.find(facts)):
            continue  # said there, with the way out
        name = those[0].name
        place = those[0].elsewhere
        other = f" It starts on `{place}`, which is another queue's." if place else ""
        yield error(
            f"The required check `{check.name}` never reports on a test branch: `{name}` does not "
            f"start there.{other}",
            f"In `{workflows.FOLDER}/{name}`, add {_trigger_of(facts)} under `on:`.",
        )


def _trigger_of(facts: RepositoryFacts) -> str:
    """Return the trigger that starts a workflow on the queue's kind of test branch."""
    if facts.subject.vehicle is Vehicle.PUSH:
        return f'`push: {{branches: ["{workflows.PATTERN}"]}}`'
    return f"`pull_request: {{branches: [{facts.subject.branch}]}}`"


def starts(facts: RepositoryFacts, workflow: Workflow) -> bool:
    """Return whether a workflow starts on the queue's kind of test branch."""
    return bool(workflows.events_of(workflow, facts.subject.vehicle))


SETTING = "optionalStatuses"

CONDITIONS = {
    Vehicle.PUSH: "startsWith(github.ref, 'refs/heads/headgate/merge/')",
    Vehicle.DRAFT_PR: "startsWith(github.head_ref, 'headgate/merge/')",
}


@audit(
    "workflow-conditions",
    "No condition keeps a required check from running on test branches, as far as files tell.",
)
def workflow_conditions(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield a finding for each required check that cannot run, or that tests nothing, there.

    What was seen wins over what files tell: a check that ran on a test branch can run. A file that
    cannot be read may report any check, so beside one nothing is said.
    """
    if facts.workflows.unread:
        return
    for name in dict.fromkeys(one.name for one in facts.subject.required):
        jobs = workflows.jobs_on(facts.workflows.found, facts.subject.vehicle, name)
        if jobs and all(events <= job.left_out for _, job, events in jobs):
            if name not in facts.subject.ran:
                yield _left_out(facts, name, *jobs[0][:2])
            continue
        running = [each for each in jobs if not each[2] <= each[1].left_out]
        if running and all(events - job.left_out <= job.empty for _, job, events in running):
            yield _empty(facts, name, *running[0][:2])
        elif running:
            yield from _stand_ins(facts, name, [(one, job) for one, job, _ in running])


def _left_out(facts: RepositoryFacts, name: str, workflow: Workflow, job: WorkflowJob) -> Finding:
    found = f"The required check `{name}` is skipped on every test branch: {_why(workflow, job)}."
    if name in facts.subject.optional:
        return note(f"{found} `{SETTING}` names it, so pull requests land without it.")
    return error(
        f"{found} A check that ran nowhere is no evidence, so nothing lands.",
        f"{_let_run(facts, workflow)}, or, if it may be skipped, {_optional(facts, name)}.",
    )


def _empty(facts: RepositoryFacts, name: str, workflow: Workflow, job: WorkflowJob) -> Finding:
    where = "on other branches" if job.place in ("", ELSEWHERE) else f"on `{job.place}`"
    return error(
        f"The required check `{name}` passes on test branches without testing anything: the steps "
        f"of its job in `{workflow.name}` that do something run only {where}.",
        _let_run(facts, workflow, "the `if:` of these steps") + ".",
    )


def _stand_ins(
    facts: RepositoryFacts, name: str, running: list[tuple[Workflow, WorkflowJob]]
) -> Iterator[Finding]:
    """Yield a finding if another job of this name runs only in another queue."""
    others = [
        (workflow, job.place or workflow.elsewhere)
        for workflow in facts.workflows.found
        for job in workflow.each_job
        if job.name == name and _is_of_another_queue(facts, workflow, job)
    ]
    if not others:
        return
    (workflow, place), (dummy, job) = others[0], running[0]
    severity = error if all(one.is_dummy for _, one in running) else warning
    what = "does nothing" if job.is_dummy else "may be a stand-in for it"
    yield severity(
        f"On test branches `{dummy.name}` reports the required check `{name}`. The job of that "
        f"name in `{workflow.name}` runs only on `{place}`, and the one that runs here {what}.",
        f"{_let_run(facts, workflow)}, and remove the stand-in.",
    )


def _is_of_another_queue(facts: RepositoryFacts, workflow: Workflow, job: WorkflowJob) -> bool:
    events = workflows.events_of(workflow, facts.subject.vehicle)
    if not events:
        return bool(workflow.elsewhere)
    return events <= job.left_out and job.place not in ("", ELSEWHERE)


def _why(workflow: Workflow, job: WorkflowJob) -> str:
    if job.place == ELSEWHERE:
        return f"the condition of its job in `{workflow.name}` excludes test branches"
    return f"its job in `{workflow.name}` runs only on `{job.place}`"


def _let_run(facts: RepositoryFacts, workflow: Workflow, what: str = "the job's `if:`") -> str:
    path, condition = f"`{workflows.FOLDER}/{workflow.name}`", CONDITIONS[facts.subject.vehicle]
    if not starts(facts, workflow):
        return f"In {path}, add {_trigger_of(facts)} under `on:`"
    return f"In {path}, add `|| {condition}` to {what}"


def _optional(facts: RepositoryFacts, name: str) -> str:
    names = ",".join(sorted({*facts.subject.optional, name}))
    path = facts.subject.in_file.get(SETTING)
    if path is not None:
        names = f"[{names}]"
    return audits.how_to_set(facts.subject.repo, facts.subject.branch, SETTING, names, path)


@audit("workflow-drafts", "No workflow skips the queue's test branches because they are drafts.")
def workflow_drafts(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each workflow that skips drafts, where test branches are drafts."""
    subject, setting = facts.subject, "createPrsForTestingBranches"
    if subject.vehicle is not Vehicle.DRAFT_PR:
        return
    path = subject.in_file.get(setting)
    pushes = audits.how_to_set(subject.repo, subject.branch, setting, "false", path)
    for each in facts.workflows.found:
        if each.on_push or not (each.guarded or each.wrong_types):
            continue
        names = ", ".join(f"`{job}`" for job in each.guarded)
        why = f"its jobs {names} skip drafts" if names else "its `types` leave out `opened`"
        yield error(
            f"`{each.name}` does not test the queue's draft pull requests: {why}. A skipped "
            "check is no evidence, so nothing lands.",
            f"In `{workflows.FOLDER}/{each.name}`, add `push: {{branches: "
            f'["{workflows.PATTERN}"]}}` under `on:`, then {pushes}.',
        )


# Expressions of GitHub's "Contexts" that differ between test branches, by how CI sees them.
ALWAYS = ("github.ref", "github.sha", "github.run_id", "github.run_number")
ON_PULLS = ("github.head_ref", "pull_request.number", "github.event.number")


@audit("workflow-concurrency", "No concurrency group holds several test branches.")
def workflow_concurrency(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each group that does not name the branch."""
    for each in facts.workflows.found:
        if not starts(facts, each):
            continue
        is_push = facts.subject.vehicle is Vehicle.PUSH or each.on_push
        parts = ALWAYS if is_push else (*ALWAYS, *ON_PULLS)
        for group in each.groups:
            if any(part in group for part in parts):
                continue
            yield error(
                f"`{each.name}` puts all test branches into the concurrency group `{group}`, in "
                "which a newer run cancels an older one: checks of the queue are cancelled.",
                f"In `{workflows.FOLDER}/{each.name}`, set the group to "
                "`${{ github.workflow }}-${{ github.ref }}`.",
            )


@audit("workflow-paths", "No path filter keeps the workflow of a required check from starting.")
def workflow_paths(facts: RepositoryFacts) -> Iterator[Finding]:
    """Yield an error for each workflow of a required check with a path filter."""
    for each in facts.workflows.found:
        names = [one.name for one in facts.subject.required if each.reports(one.name)]
        events = [event for event in _events(facts, each) if event in each.filtered]
        if not names or not events:
            continue
        checks = ", ".join(f"`{name}`" for name in names)
        yield error(
            f"`{each.name}` has a path filter on `{', '.join(events)}`. Where no changed file "
            f"matches, {checks} never reports, and the queue waits until it gives up.",
            f"In `{workflows.FOLDER}/{each.name}`, remove `paths` and `paths-ignore` from "
            f"`{', '.join(events)}` and skip its jobs with `if:` instead: a skipped job reports.",
        )


def _events(facts: RepositoryFacts, workflow: Workflow) -> tuple[str, ...]:
    """Return the events by which a workflow reports on test branches and pull requests."""
    if not starts(facts, workflow):
        return ("pull_request",) if workflow.on_draft else ()
    pushed = ("push",) if workflow.on_push else ()
    is_push = facts.subject.vehicle is Vehicle.PUSH
    return (*pushed, "pull_request") if workflow.on_draft or not is_push else pushed
