"""Whether CI starts on the queue's kind of test branch, by the files of the target branch."""

from collections.abc import Iterator

from service.mergequeue.operations import vehicles
from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provider import audits
from service.provider.audits import Finding, error, note
from service.provider.values import Vehicle

ID = "test-branch-kind"
FINE = "The queue's test branches are of the kind that CI starts on."
NAMES = {Vehicle.DRAFT_PR: "draft pull requests", Vehicle.PUSH: "pushes"}


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield an error where the setting contradicts the workflow files."""
    advised = facts.advice.vehicle
    if advised is None:
        yield note(ID, facts.advice.reason)
        return
    queue = facts.queue
    if queue is not None and vehicles.is_without_drafts(queue.test_branch_reason):
        if advised is Vehicle.PUSH:
            yield note(ID, f"{queue.test_branch_reason}")
        else:
            found = f"{queue.test_branch_reason} But {facts.advice.reason}"
            yield error(ID, found, f"Let those workflows also start on {facts.trigger}.")
    elif advised is not facts.vehicle:
        word = "true" if advised is Vehicle.DRAFT_PR else "false"
        setting = "createPrsForTestingBranches"
        path = facts.in_file.get(setting)
        mend = audits.how_to_set(facts.repo, facts.branch, setting, word, path)
        yield error(
            ID,
            f"The queue shows its test branches to CI as {NAMES[facts.vehicle]}, but "
            f"{facts.advice.reason}",
            f"{mend[0].upper()}{mend[1:]}.",
        )
