"""From deliveries to signals: one table, (event, action) to a function (GITHUB.md 1.4).

Pure. Events and actions that are not in the table mean nothing to us and yield nothing. What
our own App did yields facts, never a wish; what happens to our own test branches and their
draft pull requests by our own hand yields nothing at all.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot import commands
from bot.github import payloads, refs
from bot.github.fields import Fields
from bot.github.payloads import Person, Report, Words
from service.provider.signals import (
    AccessChanged,
    Asked,
    AskSource,
    BranchGone,
    BranchMoved,
    CheckReported,
    CiRunEnded,
    DefaultBranchRenamed,
    Delivery,
    LabelChanged,
    News,
    PullRequestChanged,
    RemovedWhy,
    RepositoryAdded,
    RepositoryChanged,
    RepositoryRemoved,
    RulesChanged,
    Signal,
    Where,
)
from service.provider.values import Lost
from service.vocabulary import Actor, ActorKind, Channel

BRANCHES = "refs/heads/"
GHOST = Person(id="", login="ghost", is_bot=False)


@dataclass(frozen=True, slots=True)
class OwnApp:
    """How we recognize ourselves: the App's number and its name in addresses."""

    id: str
    slug: str

    @property
    def login(self) -> str:
        """What GitHub shows as the author of our acts."""
        return f"{self.slug}[bot]"


@dataclass(frozen=True, slots=True)
class Read:
    """One delivery, decoded, with what its translation needs to know."""

    delivery: Delivery
    payload: Fields
    own: OwnApp
    prefix: str

    @property
    def where(self) -> Where:
        """The repository it is about."""
        return payloads.where_of(self.payload, self.delivery.host)

    def actor(self, person: Person | None, channel: Channel = Channel.SYSTEM) -> Actor:
        """Somebody who acted, as one of us, a bot or a person."""
        who = person or GHOST
        kind = ActorKind.BOT if who.is_bot else ActorKind.PERSON
        if who.is_bot and who.login.lower() == self.own.login.lower():
            kind = ActorKind.SELF
        return Actor(kind, who.login, who.id, channel)

    @property
    def sender(self) -> Actor:
        """Who caused it."""
        return self.actor(payloads.sender_of(self.payload))


Signals = tuple[Signal, ...]
Translation = Callable[[Read], Signals]


def signals_of(delivery: Delivery, own: OwnApp, prefix: str = commands.PREFIX) -> Signals:
    """What a delivery tells, in order; nothing for unknown events and actions.

    Raises `fields.Unreadable` when a field we need is not there.
    """
    translation = TABLE.get((delivery.event, delivery.action))
    if translation is None:
        return ()
    payload = Fields(json.loads(delivery.body))
    return translation(Read(delivery, payload, own, prefix))


def _comment(read: Read) -> Signals:
    number = payloads.number_of_comment(read.payload)
    if number is None:
        return ()
    return _asked(read, number, payloads.comment_of(read.payload), AskSource.COMMENT)


def _review_submitted(read: Read) -> Signals:
    number = payloads.pull_event_of(read.payload).number
    asked = _asked(read, number, payloads.review_of(read.payload), AskSource.REVIEW)
    return (*asked, *_pull(read))


def _asked(read: Read, number: int, words: Words, source: AskSource) -> Signals:
    ask = commands.parse(words.body, read.prefix)
    if ask is None or words.author is None or words.app_id == read.own.id:
        return ()
    actor = read.actor(words.author, Channel.COMMENT)
    if actor.kind is ActorKind.SELF:
        return ()
    at = words.at or read.delivery.received_at
    return (Asked(read.where, number, actor, ask, source, words.id, at),)


def _pull(read: Read) -> Signals:
    event = payloads.pull_event_of(read.payload)
    where = read.where
    if event.head_branch.startswith(refs.PREFIX) and event.head_repo == where.id.id:
        return ()
    return (PullRequestChanged(where, event.number, event.head_sha),)


def _label(read: Read) -> Signals:
    event, actor = payloads.pull_event_of(read.payload), read.sender
    if event.label is None or actor.kind is ActorKind.SELF:
        return ()
    actor = Actor(actor.kind, actor.login, actor.id, Channel.LABEL)
    added = read.delivery.action == "labeled"
    changed = LabelChanged(read.where, event.number, actor, event.label, added, event.at)
    return (changed, *_pull(read))


def _push(read: Read) -> Signals:
    push, actor = payloads.push_of(read.payload), read.sender
    branch = push.ref.removeprefix(BRANCHES)
    is_own_act = actor.kind is ActorKind.SELF and branch.startswith(refs.PREFIX)
    if not push.ref.startswith(BRANCHES) or is_own_act:
        return ()
    if push.deleted:
        return (BranchGone(read.where, branch, actor),)
    return (BranchMoved(read.where, branch, push.after, actor, push.forced, push.paths),)


def _report(member: str) -> Translation:
    def reported(read: Read) -> Signals:
        report = payloads.report_of(read.payload, member)
        return () if report.app_id == read.own.id else (_told(read, report),)

    return reported


def _ci_run_ended(read: Read) -> Signals:
    reported = _report("workflow_run")(read)
    return (*reported, CiRunEnded(read.where, *payloads.ci_run_of(read.payload)))


def _status(read: Read) -> Signals:
    return (_told(read, payloads.status_of(read.payload)),)


def _told(read: Read, report: Report) -> CheckReported:
    """A conclusion that can be taken back later is not told from one that stays."""
    if report.word is None:
        news = News.BEGAN
    else:
        news = News.PASSED if report.word == "success" else News.OTHER
    return CheckReported(read.where, report.sha, news)


def _rules(read: Read) -> Signals:
    return (RulesChanged(read.where),) if payloads.has_repository(read.payload) else ()


def _repository_edited(read: Read) -> Signals:
    change = payloads.default_branch_change_of(read.payload)
    if change is None:
        return (RepositoryChanged(read.where),)
    return (DefaultBranchRenamed(read.where, *change),)


def _repository_changed(read: Read) -> Signals:
    return (RepositoryChanged(read.where),)


def _repository_lost(why: RemovedWhy) -> Translation:
    return lambda read: (RepositoryRemoved(read.where, why),)


def _added(member: str) -> Translation:
    return lambda read: tuple(
        RepositoryAdded(where)
        for where in payloads.repositories_of(read.payload, member, read.delivery.host)
    )


def _removed(member: str) -> Translation:
    return lambda read: tuple(
        RepositoryRemoved(where, RemovedWhy.UNINSTALLED)
        for where in payloads.repositories_of(read.payload, member, read.delivery.host)
    )


def _access(*, suspended: bool) -> Translation:
    return lambda read: (
        AccessChanged(read.delivery.host, payloads.owner_id_of(read.payload), suspended),
    )


def _nothing(_read: Read) -> Signals:
    return ()


def _each(event: str, *actions: str, by: Translation) -> dict[tuple[str, str | None], Translation]:
    return {(event, action): by for action in actions}


COMMANDS = frozenset(
    {
        ("issue_comment", "created"),
        ("pull_request_review", "submitted"),
        ("pull_request", "labeled"),
        ("pull_request", "unlabeled"),
    }
)
"""Deliveries that may hold a person's command."""

SWEPT = frozenset({"check_run", "check_suite", "status"})
"""Events whose facts the sweeps read every minute or so.

Not `workflow_run`: the sweep of ended CI runs passes over repositories without a queue and
without tests, and such an event may bring the first test results of one.
"""


def lost_with(event: str, action: str | None) -> Lost:
    """Return what is lost when a delivery of this kind never arrives."""
    if (event, action) in COMMANDS:
        return Lost.COMMAND
    translation = TABLE.get((event, action), _nothing)
    return Lost.SWEPT if event in SWEPT or translation is _nothing else Lost.FACT


TABLE: Mapping[tuple[str, str | None], Translation] = {
    ("issue_comment", "created"): _comment,
    ("pull_request_review", "submitted"): _review_submitted,
    **_each("pull_request_review", "edited", "dismissed", by=_pull),
    **_each("pull_request_review_thread", "resolved", "unresolved", by=_pull),
    **_each("pull_request", "opened", "edited", "reopened", "closed", "synchronize", by=_pull),
    **_each("pull_request", "ready_for_review", "converted_to_draft", by=_pull),
    **_each("pull_request", "labeled", "unlabeled", by=_label),
    **_each("check_run", "created", "completed", "rerequested", by=_report("check_run")),
    **_each("check_suite", "completed", "rerequested", by=_report("check_suite")),
    **_each("workflow_run", "requested", "in_progress", by=_report("workflow_run")),
    ("workflow_run", "completed"): _ci_run_ended,
    ("status", None): _status,
    ("push", None): _push,
    **_each("repository_ruleset", "created", "edited", "deleted", by=_rules),
    **_each("branch_protection_rule", "created", "edited", "deleted", by=_rules),
    ("repository", "edited"): _repository_edited,
    **_each("repository", "renamed", "archived", "unarchived", by=_repository_changed),
    **_each("repository", "privatized", "publicized", by=_repository_changed),
    ("repository", "deleted"): _repository_lost(RemovedWhy.DELETED),
    ("repository", "transferred"): _repository_lost(RemovedWhy.TRANSFERRED),
    ("installation", "created"): _added("repositories"),
    ("installation", "deleted"): _removed("repositories"),
    ("installation", "suspend"): _access(suspended=True),
    **_each("installation", "unsuspend", by=_access(suspended=False)),
    **_each("installation", "new_permissions_accepted", by=_access(suspended=False)),
    ("installation_repositories", "added"): _added("repositories_added"),
    ("installation_repositories", "removed"): _removed("repositories_removed"),
    ("installation_target", "renamed"): _access(suspended=False),
    ("github_app_authorization", "revoked"): _nothing,
    ("ping", None): _nothing,
}
