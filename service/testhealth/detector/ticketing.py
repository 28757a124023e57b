"""Decide when a test gets an issue, and when it is closed (docs/design/quarantine.md 4). Pure.

People have the last word on whether it is open: what they closed stays closed, and what they
reopened open, until the test's status changes.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.vocabulary import UNHEALTHY, Health

OPEN_AFTER = timedelta(hours=24)
"""So long a test is unhealthy before it gets an issue."""

OPEN_IMPACT = 3
"""With so many pull requests hit in a week it gets one at once."""

NEW_MAX = 5
NEW_WITHIN = timedelta(hours=24)
"""So many new issues in a repository in so long: a bad night must not flood a tracker."""

REOPEN_AFTER = timedelta(days=10)
"""An issue that was closed more recently only gets a comment."""

LOOK_EVERY = timedelta(hours=24)
"""The time after which the figures in an open issue are renewed."""


@dataclass(frozen=True, slots=True)
class KeepTicket:
    """The issue of a test is to be brought up to date; asked of the world like an action."""

    no: int


@dataclass(frozen=True, slots=True)
class TicketIssue:
    """The record of a test's issue.

    `told` is the status in its text. `number` and `html_url` are None until it is made.
    While `reopens` it is closed and its text names a later status: it opens again when it has been
    closed for long enough. `look_at` is when to look again although nothing happened.
    """

    no: int
    asked_at: datetime
    told: Health
    number: int | None = None
    html_url: str | None = None
    reopens: bool = False
    look_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProviderIssue:
    """The issue as the provider has it; `closed_at` is None while it is open."""

    number: int
    html_url: str
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Writing:
    """The text is to be written, with a comment if `comments`; `is_open` None: left as it is."""

    comments: bool = False
    is_open: bool | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """Unhealthy tests get an issue if they are so since then or hit so many pull requests."""

    since: datetime
    impact: int
    many: int


def opening(now: datetime, asked_lately: int) -> Opening:
    """Return which tests get an issue now, and how many; `asked_lately`: new within NEW_WITHIN."""
    return Opening(now - OPEN_AFTER, OPEN_IMPACT, max(0, NEW_MAX - asked_lately))


def new_issue(no: int, status: Health, now: datetime) -> TicketIssue:
    """An issue that is to be made."""
    return TicketIssue(no, now, status, look_at=now + LOOK_EVERY)


def writing_of(
    issue: TicketIssue,
    present: ProviderIssue | None,
    status: Health,
    now: datetime,
    *,
    is_linked: bool = False,
) -> Writing | None:
    """Return what to write, None: nothing. `present` None: there is no such issue, or no longer.

    `is_linked`: the test has a ticket.
    """
    is_sick = status in UNHEALTHY
    if present is None:
        # One that somebody deleted is not made again for the same status, and none is made
        # where people have linked a ticket of theirs since it was asked for.
        is_wanted = is_sick and issue.number is None and not is_linked
        return Writing(is_open=True) if is_wanted else None
    is_news = _is_news(issue, present, status)
    if not is_sick:
        return Writing(comments=True, is_open=False) if is_news else None
    if present.closed_at is None:
        return Writing(comments=is_news)
    is_due = now - present.closed_at >= REOPEN_AFTER
    if is_news:
        return Writing(comments=True, is_open=True if is_due else None)
    return Writing(is_open=True) if issue.reopens and is_due else None


def remembered(
    issue: TicketIssue, stands: ProviderIssue | None, status: Health, now: datetime
) -> TicketIssue | None:
    """Return what to remember once it is written, `stands` the issue then; None: nothing.

    A deleted issue is forgotten with the next status: the test may get a new one after that.
    """
    if stands is None:
        return replace(issue, look_at=None) if issue.number and status is issue.told else None
    is_closed = stands.closed_at is not None
    is_told = issue.reopens or _is_news(issue, stands, status)
    reopens = status in UNHEALTHY and is_closed and is_told
    look_at = None
    if status in UNHEALTHY and stands.closed_at is None:
        look_at = now + LOOK_EVERY
    elif reopens and stands.closed_at is not None:
        look_at = stands.closed_at + REOPEN_AFTER
    return TicketIssue(
        issue.no, issue.asked_at, status, stands.number, stands.html_url, reopens, look_at
    )


def _is_news(issue: TicketIssue, present: ProviderIssue, status: Health) -> bool:
    """Return whether the issue tells of another status; a lost one that is closed tells of none."""
    return status is not issue.told or (issue.number is None and present.closed_at is not None)
