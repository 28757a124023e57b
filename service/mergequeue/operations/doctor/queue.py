"""Audits of the queue: its state, settings and branches."""

from collections.abc import Iterator

from service.mergequeue.engine.reasons import LIFTED_BY_PERSON
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import vehicles
from service.mergequeue.operations.doctor.facts import QueueFacts
from service.mergequeue.wording import holds
from service.provider import audits
from service.provider.audits import Finding, audit, error, note, warning
from service.provider.values import Vehicle
from service.text import markdown


@audit("queue-state", "The queue is running, and nothing holds it.")
def queue_state(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a note without a queue, and a finding for the state and each hold."""
    queue, branch = facts.queue, facts.branch
    if queue is None:
        create = audits.command("create", facts.repo, branch)
        yield note(f"`{branch}` has no queue.", f"Run {create}.")
        return
    if queue.state is not QueueState.RUNNING:
        words = markdown.plain(holds.state_text(queue, facts.now))
        yield note(words, f"Run {audits.command('resume', facts.repo, branch)}.")
    for hold in queue.holds:
        mend = "Fix the errors above; the hold ends by itself."
        if hold.reason in LIFTED_BY_PERSON:
            release = audits.command("release", facts.repo, branch, "--reason", "TEXT", hold.id)
            mend = f"Fix what it says, then run {release}."
        yield warning(holds.message(hold, branch, facts.now), mend)


@audit("repository-file", "The repository's file of settings has no fault, or there is none.")
def repository_file(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a warning for each fault, because the queue goes on with older settings."""
    file = None if facts.queue is None else facts.queue.file
    for fault in () if file is None else file.faults:
        line = "" if fault.line is None else f", line {fault.line}"
        yield warning(
            f"{fault.message} ({fault.path}{line}). The settings of the last version without a "
            "fault are in force.",
            f"Change the file on `{facts.branch}`; `headgate config validate` checks it.",
        )


NAMES = {Vehicle.DRAFT_PR: "draft pull requests", Vehicle.PUSH: "pushes"}


@audit("test-branch-kind", "The queue's test branches are of the kind that CI starts on.")
def vehicle_kind(facts: QueueFacts) -> Iterator[Finding]:
    """Yield an error where the setting contradicts the workflow files."""
    advised = facts.advice.vehicle
    if advised is None:
        yield note(facts.advice.reason)
        return
    queue = facts.queue
    if queue is not None and vehicles.is_without_drafts(queue.test_branch_reason):
        if advised is Vehicle.PUSH:
            yield note(f"{queue.test_branch_reason}")
        else:
            found = f"{queue.test_branch_reason} But {facts.advice.reason}"
            yield error(found, f"Let those workflows also start on {facts.trigger}.")
    elif advised is not facts.vehicle:
        word = "true" if advised is Vehicle.DRAFT_PR else "false"
        setting = "createPrsForTestingBranches"
        path = facts.in_file.get(setting)
        mend = audits.how_to_set(facts.repo, facts.branch, setting, word, path)
        yield error(
            f"The queue shows its test branches to CI as {NAMES[facts.vehicle]}, but "
            f"{facts.advice.reason}",
            f"{mend[0].upper()}{mend[1:]}.",
        )


NAMED_MAX = 5


@audit("leftover-branches", "Every branch under `headgate/` belongs to a run of this service.")
def leftover_branches(facts: QueueFacts) -> Iterator[Finding]:
    """Yield one warning that names the branches."""
    if facts.leftovers:
        names = " ".join(facts.leftovers[:NAMED_MAX])
        yield warning(
            f"{len(facts.leftovers)} branches under `headgate/` belong to no run of this service: "
            f"{names}. Another tool or another installation of Headgate uses the same names.",
            "If no other Headgate works in this repository, delete them: `git push origin "
            f"--delete {names}`.",
        )
