"""Required checks whose jobs, or all of their steps, are left out on test branches."""

from collections.abc import Iterator

from bot.github import workflows
from bot.github.audits import workflow_triggers
from bot.github.audits.facts import RepositoryFacts
from bot.github.workflow_files import Workflow
from bot.github.workflow_jobs import WorkflowJob
from service.provider import audits
from service.provider.audits import Finding, error, note, warning
from service.provider.values import Vehicle
from service.vocabulary import ELSEWHERE

ID = "workflow-conditions"
SETTING = "optionalStatuses"
FINE = "No condition keeps a required check from running on test branches, as far as files tell."

CONDITIONS = {
    Vehicle.PUSH: "startsWith(github.ref, 'refs/heads/headgate/merge/')",
    Vehicle.DRAFT_PR: "startsWith(github.head_ref, 'headgate/merge/')",
}


def decide(facts: RepositoryFacts) -> Iterator[Finding]:
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
        return note(ID, f"{found} `{SETTING}` names it, so pull requests land without it.")
    return error(
        ID,
        f"{found} A check that ran nowhere is no evidence, so nothing lands.",
        f"{_let_run(facts, workflow)}, or, if it may be skipped, {_optional(facts, name)}.",
    )


def _empty(facts: RepositoryFacts, name: str, workflow: Workflow, job: WorkflowJob) -> Finding:
    where = "on other branches" if job.place in ("", ELSEWHERE) else f"on `{job.place}`"
    return error(
        ID,
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
        ID,
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
    if not workflow_triggers.starts(facts, workflow):
        return f"In {path}, add {workflow_triggers.trigger_of(facts)} under `on:`"
    return f"In {path}, add `|| {condition}` to {what}"


def _optional(facts: RepositoryFacts, name: str) -> str:
    names = ",".join(sorted({*facts.subject.optional, name}))
    path = facts.subject.in_file.get(SETTING)
    if path is not None:
        names = f"[{names}]"
    return audits.how_to_set(facts.subject.repo, facts.subject.branch, SETTING, names, path)
