"""An answer to a command: a reaction on the comment, and a new comment where one is needed."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.mergequeue.engine.applying import commands
from service.mergequeue.engine.model import MergeQueue, RequiredSet
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import FINAL, EntryState, QueueState
from service.mergequeue.wording import bodies, conditions, history, holds, refusals, suspicions
from service.mergequeue.wording.names import AGAIN, MERGE
from service.mergequeue.wording.situation import PullRequestText
from service.provider.signals import (
    AskCancel,
    AskForeign,
    AskRetry,
    AskStatus,
    AskSubmit,
    AskUnclear,
)
from service.provider.stacks import MergedFrom
from service.provider.values import (
    AccessLevel,
    Emoji,
)
from service.text import markdown, phrases, times
from service.text.markdown import Links
from service.text.phrases import Code, Phrase, Pull, phrase
from service.vocabulary import PullRequestState, Sha

NOTHING_CHANGED = " Nothing was changed."

IN_SECONDS_MAX = 90
"""A shorter wait is told as a duration, because a time without seconds may be now."""

# A reply of one sentence names no page, so no address has to be allowed.
_NO_LINKS = Links(web_url="")


@dataclass(frozen=True, slots=True)
class Answer:
    """The reaction to the comment, and the reply, if there is one."""

    emoji: Emoji
    text: str | None = None


def _accepted(text: Phrase) -> Answer:
    """The command was run."""
    return Answer(Emoji.ACCEPTED, _written(text))


def _unclear(text: Phrase) -> Answer:
    """It was not understood, or there was nothing to do."""
    return Answer(Emoji.UNCLEAR, _written(text))


def _refused(text: Phrase) -> Answer:
    """It was not done."""
    return Answer(Emoji.REFUSED, _written(text))


def _written(text: Phrase) -> str:
    """The text of a reply as Markdown; pages are named without a link."""
    return markdown.markdown(text, _NO_LINKS)


class Right(StrEnum):
    """The rights that commands need."""

    STATUS = "status"
    SUBMIT = "submit"
    CANCEL = "cancel"
    RETRY = "retry"
    URGENT = "urgent"
    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    SENSITIVE_FORK = "sensitive_fork"


@dataclass(frozen=True, slots=True)
class Denial:
    """A person lacks a right: who, where (`owner/name`), what for, and their access."""

    login: str
    slug: str
    right: Right
    needs: AccessLevel
    has: AccessLevel


@dataclass(frozen=True, slots=True)
class Reprioritized:
    """A queued pull request got another priority and, maybe, another place."""

    before: int
    after: int
    position: int | None
    length: int


def accepted() -> Answer:
    """Done; the status comment says the rest."""
    return Answer(Emoji.ACCEPTED)


def head_moved(head: Sha, below: int | None = None, *, is_fork: bool = False) -> Answer:
    """Commits were pushed around the time of the comment, so the intended head is uncertain.

    `below`: to that member of the stack. Of a fork, whose base may have changed instead, the
    answer is the command that names the head.
    """
    if is_fork:
        words = (
            "GitHub's times do not prove that your comment was written for the head {} on its "
            "present base: it must be at least a second younger. Check both, then comment {}."
        )
        return _unclear(phrase(words, phrases.commit(head), Code(f"{MERGE.text} --sha={head}")))
    where = Phrase() if below is None else phrase(" on {}", Pull(below))
    return _unclear(
        phrase(
            "New commits arrived{} around the time of your comment; the head is now {}. Check "
            "them, then comment {} again.",
            where,
            phrases.commit(head),
            MERGE,
        )
    )


def stack_submitted(numbers: Sequence[int]) -> Answer:
    """A stack was submitted, from the bottom up."""
    words = "The PRs of this stack are tested and merged together, from the bottom up: {}."
    return _accepted(phrase(words, phrases.pulls(numbers)))


def sha_differs(head: Sha, given: str) -> Answer:
    """The commit that was named is not the head."""
    words = f"The head is {{}}, not {{}}.{NOTHING_CHANGED} Check the commits, then comment {{}}."
    command = Code(f"{MERGE.text} --sha={phrases.commit(head).text}")
    return _unclear(phrase(words, phrases.commit(head), phrases.commit(given), command))


def denied(denial: Denial) -> Answer:
    """A person lacks the right; the reply mentions them, because it is meant for them."""
    needs, has = _level(denial.needs), _level(denial.has)
    command, who = COMMANDS[denial.right], phrases.mention(denial.login)
    if denial.needs >= AccessLevel.MAINTAIN:
        words = f"{{}} {_RIGHTS[denial.right]} needs {needs} access (you have {has}). "
        return _refused(phrase(words + "Ask a maintainer to comment {}.", who, command))
    words = f"{{}} you need {needs} access to {{}} for {{}} (you have {has}). "
    ask = phrase("Ask somebody with that access to comment {}.", command)
    return _refused(phrase(words, who, denial.slug, command) + ask)


def forks_denied(branch: str) -> Answer:
    """The queue takes no pull requests from forks."""
    return _refused(
        phrase(
            "The queue for {} takes no PRs from forks. Push the commits to a branch of this "
            "repository and open a PR from there.",
            branch,
        )
    )


def reprioritized(change: Reprioritized) -> Answer:
    """A queued pull request has a new priority."""
    before, after = (history.priority_name(each) for each in (change.before, change.after))
    text = Phrase((f"Priority changed from {before} to {after}",))
    place = bodies.place(change.position, change.length)
    return _accepted(text + (phrase(": now {}.", place) if place.parts else phrase(".")))


def not_in_queue(ask: AskCancel | AskRetry, state: PullRequestState) -> Answer:
    """There is nothing to remove or to restart."""
    verb = "remove" if isinstance(ask, AskCancel) else "restart"
    text = phrase(f"This PR is {_NOT_QUEUED[state]}, so there was nothing to {verb}.")
    if isinstance(ask, AskRetry) and state is PullRequestState.OPEN:
        text += phrase(" Comment {} to queue it.", MERGE)
    return _unclear(text)


_NOT_QUEUED = {
    PullRequestState.OPEN: "not in the queue",
    PullRequestState.CLOSED: "closed",
    PullRequestState.MERGED: "already merged",
}
"""Why a pull request is not in the queue, by its state."""


def nothing_runs(position: int | None, length: int) -> Answer:
    """There are no tests to restart yet."""
    place = bodies.place(position, length)
    where = (
        phrase("; it is {}.", place) if place.parts else phrase("; it waits to enter the queue.")
    )
    return _unclear(phrase("No tests are running for this PR yet") + where)


def not_open(state: PullRequestState) -> Answer:
    """The pull request is closed or merged."""
    return refused(Refused(commands.not_open(state), ""), "")


def refused(refusal: Refused, branch: str) -> Answer:
    """The queue refused the command."""
    if refusal.reason is Reason.ALREADY_LANDED:
        return _unclear(refusals.text(refusal, branch))
    return _refused(refusals.text(refusal, branch))


def again_by_program() -> Answer:
    """Only people know better than the failed tests."""
    return _refused(phrase("Only a person with write access may use {}." + NOTHING_CHANGED, AGAIN))


def said(detail: str) -> Answer:
    """A rule refused it, in the rule's own words."""
    return _refused(phrase("{}" + NOTHING_CHANGED, detail))


def being_merged(ask: AskCancel | AskRetry) -> Answer:
    """A landing that is under way cannot be called back."""
    command = COMMANDS[Right.CANCEL if isinstance(ask, AskCancel) else Right.RETRY]
    return _unclear(phrase("This PR is being merged right now, so {} came too late.", command))


def flood(until: datetime, now: datetime) -> Answer:
    """Too many commands in a short time."""
    seconds = max(math.ceil((until - now).total_seconds()), 1)
    is_short = seconds <= IN_SECONDS_MAX
    when = f"in {seconds} s" if is_short else f"at {times.clock_time(until, now)}"
    return _refused(Phrase((f"Too many commands. Try again {when}.",)))


def broken(error_id: str) -> Answer:
    """A mistake of ours; the id finds it in the log."""
    return _unclear(
        phrase(
            "Something went wrong on our side (error {}). The PR is unchanged. Give this error id "
            "to your Headgate administrator.",
            error_id,
        )
    )


def status(view: PullRequestText) -> Answer:
    """Why it is not merged yet: state, conditions and next event."""
    glyph = bodies.GLYPHS[view.entry.state]
    pieces = [f"{glyph} **{markdown.markdown(bodies.heading(view), view.links)}**"]
    if view.entry.state in FINAL:
        pieces.append(bodies.body(view))
        return Answer(Emoji.ACCEPTED, "\n\n".join(each for each in pieces if each))
    pieces.append(bodies.checklist(view))
    believed = suspicions.sentence(view.explained.suspicion)
    pieces.append(markdown.markdown(believed, view.links))
    stopped = conditions.stopped(view)
    pieces.append(markdown.markdown(stopped, view.links))
    following = conditions.what_next(view.explained.next, view.situation.unmet)
    if following.parts:
        pieces.append(markdown.markdown(phrase("Next: {}", following), view.links))
    return Answer(Emoji.ACCEPTED, "\n\n".join(each for each in pieces if each))


def never_submitted(branch: str, state: PullRequestState) -> Answer:
    """There is nothing to explain: it was never queued."""
    if state is not PullRequestState.OPEN:
        return _accepted(refusals.text(Refused(commands.not_open(state), ""), branch))
    return _accepted(
        phrase("This PR is not in the queue for {}. Comment {} to add it.", branch, MERGE)
    )


COMMANDS = {
    Right.STATUS: Code("/merge status"),
    Right.SUBMIT: MERGE,
    Right.CANCEL: Code("/merge cancel"),
    Right.RETRY: Code("/merge retry"),
    Right.URGENT: Code("/merge --priority=urgent"),
    Right.PAUSE: Code("/merge pause reason"),
    Right.RESUME: Code("/merge resume"),
    Right.DRAIN: Code("/merge drain reason"),
    Right.SENSITIVE_FORK: MERGE,
}
"""The command for each right."""

_RIGHTS = {
    Right.STATUS: "reading the status",
    Right.SUBMIT: "queueing a PR",
    Right.CANCEL: "removing a PR from the queue",
    Right.RETRY: "restarting tests",
    Right.URGENT: "priority urgent (0 to 9)",
    Right.PAUSE: "pausing the queue",
    Right.RESUME: "resuming the queue",
    Right.DRAIN: "draining the queue",
    Right.SENSITIVE_FORK: "queueing a PR from a fork that changes CI files",
}


def _level(level: AccessLevel) -> str:
    return level.name.lower() if level is not AccessLevel.NONE else "no access"


def queue_made(queue: MergeQueue, required: RequiredSet) -> Answer:
    """The first command for a branch made its queue."""
    return _accepted(
        phrase(
            "This is the first PR for {}, so I created a queue. It tests up to {} PRs at the same "
            "time. Required checks: {} ({}).",
            queue.branch,
            queue.config.concurrency,
            phrases.names([each.name for each in required.names]),
            phrases.source(required.source),
        )
        + _pushed(queue)
    )


def _pushed(queue: MergeQueue) -> Phrase:
    """Explain why test branches have no draft pull request."""
    if queue.config.create_prs_for_testing_branches or not queue.test_branch_reason:
        return Phrase()
    reason = phrases.quoted(queue.test_branch_reason)
    return phrase(" Its test branches have no draft PR: {}.", reason)


def no_queue(branch: str, branches: tuple[str, ...]) -> Answer:
    """The base branch has no queue, and commands make none here."""
    text = phrase("There is no queue for {}.", branch)
    if branches:
        text += phrase(" Queues here: {}.", phrases.names(branches))
    # An admin pastes it into a shell, and the name of a branch may have characters of a shell.
    command = Code(f"headgate queue create --branch {shlex.quote(branch)}")
    return _refused(text + phrase(" An admin can create one with {}.", command))


def base_was_merged(branch: str, merged: MergedFrom) -> Answer:
    """The base is the left-over branch of a merged pull request: a merge there reaches nobody."""
    command = Code(f"headgate queue create --branch {shlex.quote(branch)}")
    return _refused(
        phrase(
            "{} belonged to {}, which was merged into {}. Change the base to {}, then comment {} "
            "again. (If {} is still in use, an admin creates its queue with {}.)",
            branch,
            Pull(merged.number),
            merged.base,
            merged.base,
            MERGE,
            branch,
            command,
        )
    )


def no_required_checks(branch: str) -> Answer:
    """Without a required check nothing would be tested, so the first command made no queue."""
    return _refused(
        phrase(
            "I found no required checks for {}, so I would merge untested code. Require the "
            "checks of your CI in branch protection or a ruleset, or list them as {} in {}; then "
            "comment {} again.",
            branch,
            Code("requiredStatuses"),
            Code(".github/headgate.yml"),
            MERGE,
        )
    )


def rules_unreadable(branch: str) -> Answer:
    """Return whether there are required checks could not be found out."""
    return _refused(
        phrase(
            "The required checks of {} cannot be read, so I did not create a queue. Give the App "
            "the permission to read the rules of the repository, then comment {} again.",
            branch,
            MERGE,
        )
    )


def provider_queue(branch: str) -> Answer:
    """The provider's own queue owns the branch."""
    return _refused(
        phrase(
            "{} uses GitHub's merge queue. {} carries its settings over. Set {} in {} to try "
            "Headgate beside it, or remove that rule to use Headgate here.",
            branch,
            "headgate import",
            "shadow: true",
            ".github/headgate.yml",
        )
    )


def paused(queue: MergeQueue) -> Answer:
    """The queue was paused."""
    text = phrase("Queue for {} paused{}.", queue.branch, _given_reason(queue))
    return _accepted(text + _keep_order(queue))


def drained(queue: MergeQueue) -> Answer:
    """The queue was set to drain."""
    return _accepted(
        phrase(
            "Queue for {} drains{}. Tested PRs still merge; no new tests start.",
            queue.branch,
            _given_reason(queue),
        )
    )


def resumed(queue: MergeQueue, now: datetime) -> Answer:
    """The queue runs again, but for holds that are still there."""
    text = phrase("Queue for {} resumed.", queue.branch)
    still = holds.standstill(queue, now)
    return _accepted(text + (phrase(" It is still on hold: {}", still) if still.parts else still))


def already(queue: MergeQueue, now: datetime) -> Answer:
    """The queue is already in the requested state; by whom and since when."""
    if queue.state is QueueState.RUNNING:
        still = holds.standstill(queue, now)
        rest = phrase(" It is on hold: {}", still) if still.parts else still
        return _unclear(phrase("It is already running.") + rest)
    word = "paused" if queue.state is QueueState.PAUSED else "draining"
    known = holds.circumstances(queue, now)
    since = phrase(" ({})", known) if known.parts else Phrase()
    return _unclear(phrase("It is already " + word + "{}.", since))


def command_list(branch: str, queue: MergeQueue | None) -> Answer:
    """Every command, and how the queue of this branch stands."""
    rows = [(markdown.code(command), does) for command, does in HELP]
    pieces = [markdown.table(("Command", "Does"), rows), _queue_summary(branch, queue)]
    return Answer(Emoji.ACCEPTED, "\n\n".join(pieces))


HELP = (
    ("/merge", "queue this PR; it enters as soon as it is ready"),
    (
        "/merge --priority=high",
        "queue it ahead of others: urgent, high, medium, low, lowest, or 0 to 255 (lower goes "
        "first); on a queued PR, change the priority",
    ),
    ("/merge --no-batch", "test it alone, not in a batch; --batch takes this back"),
    ("/merge --undoes #7", "it takes back the merged work of that PR on purpose"),
    ("/merge --sha=a1b2c3d", "queue it only if this is the head"),
    ("/merge --again", "queue a head that failed before, unchanged"),
    ("/merge cancel", "remove this PR from the queue"),
    ("/merge retry", "restart its tests"),
    ("/merge status", "show why it is not merged yet"),
    ("/merge pause reason", "pause the queue of the base branch"),
    ("/merge resume", "resume that queue"),
    ("/merge drain reason", "land tested PRs, start no new tests"),
)
"""Every command with an example of its options → what it does."""


def _queue_summary(branch: str, queue: MergeQueue | None) -> str:
    if queue is None:
        return _written(phrase("There is no queue for {} yet.", branch))
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
    return _written(text)


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


def foreign(ask: AskForeign) -> Answer:
    """A command of another queue, which does nothing here."""
    match ask.meant:
        case AskCancel():
            ours = "/merge cancel"
        case AskRetry():
            ours = "/merge retry"
        case AskStatus():
            ours = "/merge status"
        case AskSubmit():
            ours = MERGE.text
        case None:
            return _unclear(
                phrase(
                    "{} is a command of {}, and this repository's queue is Headgate now, which has "
                    "none that does the same. {} submits, and {} lists all commands.",
                    Code(ask.given),
                    Code(ask.queue),
                    MERGE,
                    Code("/merge help"),
                )
            )
    return _unclear(
        phrase(
            "{} is a command of {}, and this repository's queue is Headgate now: comment {}. ({} "
            "lists all commands.)",
            Code(ask.given),
            ask.queue,
            Code(ours),
            Code("/merge help"),
        )
    )


def unclear(ask: AskUnclear) -> Answer:
    """A command line that cannot be run; its author may want to mend it by an edit."""
    again = " Write a new comment: Headgate does not read edits."
    return _unclear(refusals.unclear_text(ask) + phrase(NOTHING_CHANGED + again))
