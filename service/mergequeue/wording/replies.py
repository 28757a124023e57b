"""Answers to commands: a reaction, and a new comment where one is needed (UX.md 2.4, 2.5)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import FINAL
from service.mergequeue.wording import (
    answers,
    bodies,
    conditions,
    headings,
    history,
    refusals,
    upcoming,
)
from service.mergequeue.wording.answers import NOTHING_CHANGED, Answer
from service.mergequeue.wording.endings import MERGE
from service.mergequeue.wording.view import PullRequestText
from service.provider.signals import AskCancel, AskRetry
from service.provider.values import (
    AccessLevel,
    Emoji,
)
from service.text import markdown, phrases, times
from service.text.phrases import Code, Phrase, phrase
from service.vocabulary import PullRequestState, Sha


class Wish(StrEnum):
    """What somebody may lack the right to (UX.md 2.3)."""

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
    """Somebody lacks a right: who, where (`owner/name`), what for, and what they have."""

    login: str
    slug: str
    wish: Wish
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


def head_moved(head: Sha) -> Answer:
    """Somebody pushed around the comment, so it is not certain which head was meant."""
    return answers.unclear(
        phrase(
            "The branch moved to {} around your comment. Check it, then comment {} again.",
            phrases.short(head),
            MERGE,
        )
    )


def sha_differs(head: Sha, given: str) -> Answer:
    """The commit that was named is not the head."""
    words = "The head is {}, not {}." + NOTHING_CHANGED
    return answers.unclear(phrase(words, phrases.short(head), phrases.short(given)))


def denied(denial: Denial) -> Answer:
    """Somebody lacks the right; they are called by name, for only they read it."""
    needs, has = _level(denial.needs), _level(denial.has)
    command, who = COMMANDS[denial.wish], phrases.mention(denial.login)
    if denial.needs >= AccessLevel.MAINTAIN:
        words = f"{{}} {_WISHES[denial.wish]} needs {needs} access (you have {has}). "
        return answers.refused(phrase(words + "Ask a maintainer to comment {}.", who, command))
    words = f"{{}} you need {needs} access to {{}} for {{}} (you have {has}). "
    ask = phrase("Ask somebody who has it to comment {}.", command)
    return answers.refused(phrase(words, who, denial.slug, command) + ask)


def forks_denied(branch: str) -> Answer:
    """The queue takes no pull requests from forks."""
    return answers.refused(
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
    place = headings.place(change.position, change.length)
    return answers.accepted(text + (phrase(": now {}.", place) if place.parts else phrase(".")))


def not_in_queue(ask: AskCancel | AskRetry) -> Answer:
    """There is nothing to remove or to restart."""
    verb = "remove" if isinstance(ask, AskCancel) else "restart"
    return answers.unclear(phrase(f"This PR is not in the queue, so there was nothing to {verb}."))


def nothing_runs(position: int | None, length: int) -> Answer:
    """There are no tests to restart yet."""
    place = headings.place(position, length)
    where = (
        phrase("; it is {}.", place) if place.parts else phrase("; it waits to enter the queue.")
    )
    return answers.unclear(phrase("No tests are running for this PR yet") + where)


def not_open(state: PullRequestState) -> Answer:
    """The pull request is closed or merged."""
    reason = (
        Reason.PULL_REQUEST_MERGED
        if state is PullRequestState.MERGED
        else Reason.PULL_REQUEST_CLOSED
    )
    return refused(Refused(reason, ""), "")


def refused(refusal: Refused, branch: str) -> Answer:
    """Whatever the queue refused."""
    if refusal.reason is Reason.ALREADY_LANDED:
        return answers.unclear(refusals.text(refusal, branch))
    return answers.refused(refusals.text(refusal, branch))


def said(detail: str) -> Answer:
    """A rule refused it, in the rule's own words."""
    return answers.refused(phrase("{}" + NOTHING_CHANGED, detail))


def being_merged(ask: AskCancel | AskRetry) -> Answer:
    """A landing that is under way cannot be called back."""
    command = COMMANDS[Wish.CANCEL if isinstance(ask, AskCancel) else Wish.RETRY]
    return answers.unclear(
        phrase("This PR is being merged right now, so {} came too late.", command)
    )


def flood(until: datetime, now: datetime) -> Answer:
    """Too many commands in a short time."""
    return answers.refused(
        Phrase((f"Too many commands; I listen again at {times.clock_time(until, now)}.",))
    )


def broken(error_id: str) -> Answer:
    """A mistake of ours; the id finds it in the log."""
    return answers.unclear(
        phrase(
            "Something broke on our side (id {}). The PR is unchanged. Show this id to whoever "
            "runs Headgate.",
            error_id,
        )
    )


def status(view: PullRequestText) -> Answer:
    """Why it is not merged yet: state, conditions, what is next."""
    glyph = headings.GLYPHS[view.entry.state]
    pieces = [f"{glyph} **{markdown.markdown(headings.heading(view), view.links)}**"]
    if view.entry.state in FINAL:
        pieces.append(bodies.body(view))
        return Answer(Emoji.ACCEPTED, "\n\n".join(each for each in pieces if each))
    pieces.append(bodies.checklist(view))
    stopped = conditions.stopped(view)
    pieces.append(markdown.markdown(stopped, view.links))
    following = upcoming.what_next(view.explained.next, view.situation.wanted)
    if following.parts:
        pieces.append(markdown.markdown(phrase("Next: {}", following), view.links))
    return Answer(Emoji.ACCEPTED, "\n\n".join(each for each in pieces if each))


def never_submitted(branch: str) -> Answer:
    """There is nothing to explain: it was never queued."""
    return answers.accepted(
        phrase("This PR is not in the queue for {}. Comment {} to add it.", branch, MERGE)
    )


COMMANDS = {
    Wish.STATUS: Code("/merge status"),
    Wish.SUBMIT: MERGE,
    Wish.CANCEL: Code("/merge cancel"),
    Wish.RETRY: Code("/merge retry"),
    Wish.URGENT: Code("/merge --priority=urgent"),
    Wish.PAUSE: Code("/merge pause"),
    Wish.RESUME: Code("/merge resume"),
    Wish.DRAIN: Code("/merge drain"),
    Wish.SENSITIVE_FORK: MERGE,
}
"""What one types for each wish."""

_WISHES = {
    Wish.STATUS: "reading the status",
    Wish.SUBMIT: "queueing a PR",
    Wish.CANCEL: "removing a PR from the queue",
    Wish.RETRY: "restarting tests",
    Wish.URGENT: "priority urgent (0 to 9)",
    Wish.PAUSE: "pausing the queue",
    Wish.RESUME: "resuming the queue",
    Wish.DRAIN: "draining the queue",
    Wish.SENSITIVE_FORK: "queueing a PR from a fork that changes CI files",
}


def _level(level: AccessLevel) -> str:
    return level.name.lower() if level is not AccessLevel.NONE else "no access"
