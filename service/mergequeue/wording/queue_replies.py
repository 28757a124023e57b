"""Answers about a whole queue: made, paused, drained, resumed, and the list of commands."""

from datetime import datetime

from service.mergequeue.engine.model import MergeQueue, RequiredSet
from service.mergequeue.engine.states import FINAL, EntryState, QueueState
from service.mergequeue.wording import answers, holds, refusals
from service.mergequeue.wording.answers import Answer
from service.mergequeue.wording.endings import MERGE
from service.provider.values import (
    Emoji,
)
from service.text import markdown, phrases
from service.text.phrases import Code, Phrase, phrase


def queue_made(queue: MergeQueue, required: RequiredSet) -> Answer:
    """The first command for a branch made its queue."""
    return answers.accepted(
        phrase(
            "This is the first PR for {}, so I made a queue for it: {} mode, {} at a time, "
            "required: {} ({}).",
            queue.branch,
            Phrase((queue.config.mode.value.lower(),)),
            queue.config.concurrency,
            phrases.names([each.name for each in required.names]),
            phrases.source(required.source),
        )
        + _pushed(queue)
    )


def _pushed(queue: MergeQueue) -> Phrase:
    """Why test branches come without a draft pull request."""
    if queue.config.create_prs_for_testing_branches or not queue.test_branch_reason:
        return Phrase()
    reason = phrases.quoted(queue.test_branch_reason)
    return phrase(" Its test branches have no draft PR: {}.", reason)


def no_queue(branch: str, branches: tuple[str, ...]) -> Answer:
    """The base branch has no queue, and commands make none here."""
    text = phrase("There is no queue for {}.", branch)
    if branches:
        text += phrase(" Queues here: {}.", phrases.names(branches))
    return answers.refused(
        text + phrase(" An admin can make one with {}.", Code("headgate queue create"))
    )


def no_required_checks(branch: str) -> Answer:
    """Without a required check nothing would be tested."""
    return answers.refused(refusals.no_required_checks(branch))


def rules_unreadable(branch: str) -> Answer:
    """Whether there are required checks could not be found out."""
    return answers.refused(
        phrase(
            "The required checks of {} cannot be read, so I made no queue. Give the App the "
            "permission to read the rules of the repository, then comment {} again.",
            branch,
            MERGE,
        )
    )


def provider_queue(branch: str) -> Answer:
    """The provider's own queue owns the branch."""
    return answers.refused(
        phrase("{} uses GitHub's merge queue. Remove that rule to use Headgate here.", branch)
    )


def paused(queue: MergeQueue) -> Answer:
    """The queue was paused."""
    text = phrase("Queue for {} paused{}.", queue.branch, _given_reason(queue))
    return answers.accepted(text + _keep_order(queue))


def drained(queue: MergeQueue) -> Answer:
    """The queue was told to drain."""
    return answers.accepted(
        phrase(
            "Queue for {} drains{}. Tested PRs still land, nothing new starts.",
            queue.branch,
            _given_reason(queue),
        )
    )


def resumed(queue: MergeQueue, now: datetime) -> Answer:
    """The queue runs again, but for holds that are still there."""
    text = phrase("Queue for {} resumed.", queue.branch)
    still = holds.standstill(queue, now)
    return answers.accepted(
        text + (phrase(" It is still on hold: {}", still) if still.parts else still)
    )


def already(queue: MergeQueue, now: datetime) -> Answer:
    """The queue is in the wanted state; who brought it there, and when."""
    if queue.state is QueueState.RUNNING:
        still = holds.standstill(queue, now)
        rest = phrase(" It is on hold: {}", still) if still.parts else still
        return answers.unclear(phrase("It is running already.") + rest)
    word = "paused" if queue.state is QueueState.PAUSED else "draining"
    known = holds.circumstances(queue, now)
    since = phrase(" ({})", known) if known.parts else Phrase()
    return answers.unclear(phrase("It is already " + word + "{}.", since))


def commands(branch: str, queue: MergeQueue | None) -> Answer:
    """Every command, and how the queue of this branch stands."""
    rows = [(markdown.code(command), does) for command, does in _HELP]
    pieces = [markdown.table(("Command", "Does"), rows), _situation(branch, queue)]
    return Answer(Emoji.ACCEPTED, "\n\n".join(pieces))


_HELP = (
    ("/merge", "queue this PR; it enters as soon as it is ready"),
    (
        "/merge --priority=high",
        "the same ahead of others: urgent, high, medium, low, lowest, or 0 to 255 (lower goes "
        "first); on a queued PR, change it",
    ),
    ("/merge --sha=a1b2c3d", "only if this is the head"),
    ("/merge cancel", "remove this PR from the queue"),
    ("/merge retry", "begin its running tests anew"),
    ("/merge status", "say why it is not merged yet"),
    ("/merge pause reason", "pause the queue of the base branch"),
    ("/merge resume", "let that queue run again"),
    ("/merge drain reason", "land what is tested, start nothing new"),
)


def _situation(branch: str, queue: MergeQueue | None) -> str:
    if queue is None:
        return answers.written(phrase("There is no queue for {} yet.", branch))
    known = queue.required or RequiredSet()
    named = phrases.names([each.name for each in known.names]) if known.names else phrase("none")
    text = phrase(
        "Queue for {}: {} · {} · {} · required: {} ({})",
        branch,
        Phrase((holds.STATE_NOW[queue.state],)),
        phrases.counted(_depth(queue), "PR", "PRs"),
        phrases.counted(queue.config.concurrency, "slot", "slots"),
        named,
        phrases.source(known.source),
    )
    return answers.written(text)


def _depth(queue: MergeQueue) -> int:
    waiting = (EntryState.NOT_READY, *FINAL)
    return sum(entry.state not in waiting for entry in queue.entries.values())


def _given_reason(queue: MergeQueue) -> Phrase:
    return phrase(": {}", phrases.quoted(queue.state_reason)) if queue.state_reason else Phrase()


def _keep_order(queue: MergeQueue) -> Phrase:
    depth = _depth(queue)
    if not depth:
        return Phrase()
    verb = "keeps its place" if depth == 1 else "keep their order"
    return phrase(" {} " + verb + ".", phrases.counted(depth, "PR", "PRs"))
