"""Whether the branch has a queue, and what holds it."""

from collections.abc import Iterator

from service.mergequeue.engine.reasons import LIFTED_BY_PERSON
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations.doctor.facts import QueueFacts
from service.mergequeue.wording import holds
from service.provider import audits
from service.provider.audits import Finding, note, warning
from service.text import markdown

ID = "queue-state"
FINE = "The queue is running, and nothing holds it."


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a note without a queue, and a finding for the state and each hold."""
    queue, branch = facts.queue, facts.branch
    if queue is None:
        create = audits.command("create", facts.repo, branch)
        yield note(ID, f"`{branch}` has no queue.", f"Run {create}.")
        return
    if queue.state is not QueueState.RUNNING:
        words = markdown.plain(holds.state_text(queue, facts.now))
        yield note(ID, words, f"Run {audits.command('resume', facts.repo, branch)}.")
    for hold in queue.holds:
        mend = "Fix the errors above; the hold ends by itself."
        if hold.reason in LIFTED_BY_PERSON:
            release = audits.command("release", facts.repo, branch, "--reason", "TEXT", hold.id)
            mend = f"Fix what it says, then run {release}."
        yield warning(ID, holds.message(hold, branch, facts.now), mend)
