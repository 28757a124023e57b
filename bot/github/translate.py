"""Translation of GitHub's deliveries to signals: one table, (event, action) to a function.

Pure. An event or action that is not in the table yields no signals. Our own App's deliveries
yield facts and never a command; its changes to our test branches and their draft pull requests
yield no signals.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from bot import commands
from bot.github import outcomes, refs
from bot.github.reading import (
    Fields,
    Person,
    Words,
    person_of,
    repository_where_of,
    time_of,
    words_of,
)
from service.provenance import ProviderTime
from service.provider import controls
from service.provider.controls import Control
from service.provider.signals import (
    AccessChanged,
    AskCancel,
    Asked,
    AskForeign,
    AskSource,
    AskSubmit,
    BranchGone,
    BranchMoved,
    ButtonPressed,
    CheckReported,
    CiRunEnded,
    DefaultBranchRenamed,
    Delivery,
    LabelChanged,
    Lost,
    News,
    NoticeEdited,
    PullRequestChanged,
    RemovedWhy,
    RepositoryAdded,
    RepositoryChanged,
    RepositoryRemoved,
    RulesChanged,
    ShownPullRequest,
    Signal,
    Where,
)
from service.vocabulary import Actor, ActorKind, Channel, Sha

GHOST = Person(id="", login="ghost", is_bot=False)
COMMITS_LISTED_MAX = 2048  # of one push
FILES_LISTED_MAX = 3000  # of one of its commits


@dataclass(frozen=True, slots=True)
class OwnApp:
    """The App's number and slug, by which we recognize our own actions."""

    id: str
    slug: str

    @property
    def login(self) -> str:
        """The account under which GitHub shows our App."""
        return f"{self.slug}[bot]"

    def actor(self, person: Person | None, channel: Channel = Channel.SYSTEM) -> Actor:
        """Return an account as an actor: ourselves, another bot, or a person."""
        account = person or GHOST
        kind = ActorKind.BOT if account.is_bot else ActorKind.PERSON
        if account.is_bot and account.login.lower() == self.login.lower():
            kind = ActorKind.SELF
        return Actor(kind, account.login, account.id, channel)


@dataclass(frozen=True, slots=True)
class Event:
    """One decoded delivery, with what its translation needs."""

    delivery: Delivery
    payload: Fields
    own: OwnApp
    prefix: str

    @property
    def where(self) -> Where:
        """The repository it is about."""
        return repository_where_of(self.payload.inner("repository"), self.delivery.host)

    @property
    def pull_request(self) -> Fields:
        """The pull request that it contains."""
        return self.payload.inner("pull_request")

    def sender(self, channel: Channel = Channel.SYSTEM) -> Actor:
        """Return the account that caused it."""
        return self.own.actor(person_of(self.payload.inner_or_none("sender")), channel)

    def repositories(self, member: str) -> tuple[Where, ...]:
        """Return the repositories of an installation event."""
        listed = self.payload.each(member)
        return tuple(repository_where_of(each, self.delivery.host) for each in listed)


Signals = tuple[Signal, ...]
Translation = Callable[[Event], Signals]


def signals_of(delivery: Delivery, own: OwnApp, prefix: str = commands.PREFIX) -> Signals:
    """Return the signals of a delivery, in order; none for unknown events and actions.

    Raises `reading.Unreadable` when a field that we need is missing.
    """
    translation = TABLE.get((delivery.event, delivery.action))
    if translation is None:
        return ()
    payload = Fields(json.loads(delivery.body))
    return translation(Event(delivery, payload, own, prefix))


def _comment(event: Event) -> Signals:
    issue = event.payload.inner("issue")
    if issue.inner_or_none("pull_request") is None:
        return ()
    written = words_of(event.payload.inner("comment"))
    return _command(event, issue.number("number"), written, AskSource.COMMENT)


def _comment_edited(event: Event) -> Signals:
    """A person changed a comment of ours: it is written anew, and one ticked box is a command."""
    payload = event.payload
    issue, written = payload.inner("issue"), words_of(payload.inner("comment"))
    actor = event.sender(Channel.CHECKBOX)
    is_ours = written.is_by_app(event.own.id, event.own.slug)
    if actor.kind is not ActorKind.PERSON or not is_ours:
        return ()
    restored = NoticeEdited(event.where, written.id)
    changed = (payload.inner_or_none("changes") or Fields({})).inner_or_none("body")
    control = None if changed is None else controls.ticked(changed.words("from"), written.body)
    if control is None or issue.inner_or_none("pull_request") is None:
        return (restored,)
    asked = Asked(
        where=event.where,
        number=issue.number("number"),
        actor=actor,
        ask=controls.ask_of(control),
        source=AskSource.CHECKBOX,
        source_id=_press_id(event.delivery),
        at=time_of(payload.inner("comment"), "updated_at"),
    )
    return (restored, asked)


def _button_pressed(event: Event) -> Signals:
    """Return the command of a button on our own check run; unknown buttons yield no signals."""
    action = event.payload.inner("requested_action")
    control = controls.named(action.words("identifier"))
    return () if control is None or not _is_on_own_check(event) else _pressed(event, control)


def _rerequested(event: Event) -> Signals:
    """GitHub's own button "Re-run": on our check run it queues again, or restarts the tests."""
    if not _is_on_own_check(event):
        return _report(event, member="check_run")
    has_ended = event.payload.inner("check_run").words("status") == outcomes.COMPLETED
    return _pressed(event, Control.REQUEUE if has_ended else Control.RETRY)


def _is_on_own_check(event: Event) -> bool:
    app = event.payload.inner("check_run").inner_or_none("app")
    return app is not None and app.id_or_none("id") == event.own.id


def _pressed(event: Event, control: Control) -> Signals:
    run, actor = event.payload.inner("check_run"), event.sender(Channel.BUTTON)
    ask = controls.ask_of(control, run.text("head_sha"))
    suite = run.inner_or_none("check_suite")
    # GitHub does not say when a button was pressed. The suite changed before.
    at = None if suite is None else time_of(suite, "updated_at")
    submission = run.words("external_id")
    return (ButtonPressed(event.where, submission, actor, ask, _press_id(event.delivery), at),)


def _press_id(delivery: Delivery) -> str:
    """Return the id of a press, by its content: a copy of it under another id is the same press.

    GitHub's signature covers the body alone, not the id of the delivery
    (docs/design/transactions.md 7).
    """
    return hashlib.sha256(delivery.body).hexdigest()


def _review_submitted(event: Event) -> Signals:
    number = event.pull_request.number("number")
    written = words_of(event.payload.inner("review"))
    return (*_command(event, number, written, AskSource.REVIEW), *_pull(event))


def _command(event: Event, number: int, written: Words, source: AskSource) -> Signals:
    command = commands.parse(written.body, event.prefix)
    if command is None or written.author is None or written.app_id == event.own.id:
        return ()
    actor = event.own.actor(written.author, Channel.COMMENT)
    if actor.kind is ActorKind.SELF:
        return ()
    at = None if written.at is None else ProviderTime(written.at)
    return (Asked(event.where, number, actor, command, source, written.id, at),)


PUSHED = frozenset({"opened", "reopened", "synchronize"})
"""Actions that bring a new head."""


def _pull(event: Event) -> Signals:
    pull, where = event.pull_request, event.where
    head = pull.inner("head")
    repository = head.inner_or_none("repo")
    is_own_repository = repository is not None and repository.id("id") == where.id.id
    if is_own_repository and head.text("ref").startswith(refs.PREFIX):
        return ()
    is_push = event.delivery.event == "pull_request" and event.delivery.action in PUSHED
    onto = pull.inner("base").text("ref") if is_own_repository and is_push else None
    is_closed = pull.words("state") == "closed" and pull.moment_or_none("merged_at") is None
    shown = ShownPullRequest(
        base=pull.inner("base").text("ref"),
        is_fork=not is_own_repository,
        is_closed=is_closed,
        at=time_of(pull, "updated_at"),
    )
    return (PullRequestChanged(where, pull.number("number"), Sha(head.text("sha")), onto, shown),)


def shows_no_stack(delivery: Delivery) -> bool:
    """Return whether a new head came outside of any stack; joining one is another event."""
    if delivery.event != "pull_request" or delivery.action not in PUSHED:
        return False
    pull = Fields(json.loads(delivery.body)).inner("pull_request")
    return pull.inner_or_none("stack") is None


def _label(event: Event) -> Signals:
    """Return that a label changed; our own App only adds that of a person by putting it back."""
    label = event.payload.inner_or_none("label")
    is_own = event.sender().kind is ActorKind.SELF
    if label is None or (is_own and event.delivery.action != "labeled"):
        return ()
    changed = LabelChanged(event.where, event.pull_request.number("number"), label.text("name"))
    return (changed,) if is_own else (changed, *_pull(event))


_OWN_QUEUE = "GitHub"
_BY_HAND = "MANUAL"
"""The reason of a removal from GitHub's queue by a person; of the others its merge or failure."""


def _enqueued(event: Event) -> Signals:
    """GitHub's own merge queue took the pull request; a queue in shadow takes it too."""
    return _of_own_queue(event, AskSubmit())


def _dequeued(event: Event) -> Signals:
    """It left GitHub's own queue; only a person's removal is a command."""
    if event.payload.words("reason") != _BY_HAND:
        return _pull(event)
    return _of_own_queue(event, AskCancel())


def _of_own_queue(event: Event, meant: AskSubmit | AskCancel) -> Signals:
    signals, pull = _pull(event), event.pull_request
    if not signals:
        return ()
    asked = Asked(
        where=event.where,
        number=pull.number("number"),
        actor=event.sender(),
        ask=AskForeign(_OWN_QUEUE, f"{event.delivery.action}", meant),
        source=AskSource.PROVIDER_QUEUE,
        source_id=_press_id(event.delivery),
        at=time_of(pull, "updated_at"),
    )
    return (*signals, asked)


def _push(event: Event) -> Signals:
    payload, actor = event.payload, event.sender()
    ref = payload.text("ref")
    branch = ref.removeprefix(refs.HEADS)
    is_own_push = actor.kind is ActorKind.SELF and branch.startswith(refs.PREFIX)
    if not ref.startswith(refs.HEADS) or is_own_push:
        return ()
    if payload.flag("deleted"):
        return (BranchGone(event.where, branch, actor),)
    after, forced = Sha(payload.text("after")), payload.flag("forced")
    return (BranchMoved(event.where, branch, after, actor, forced, _pushed_paths(payload)),)


def _pushed_paths(payload: Fields) -> frozenset[str] | None:
    """Return the paths that a push changes; None when the event may not list them all.

    The event of a forced push does not list the paths that it drops.
    """
    commits = payload.each("commits")
    if not commits or payload.flag("forced") or len(commits) >= COMMITS_LISTED_MAX:
        return None
    changed = [list(_changed_paths(commit)) for commit in commits]
    if any(len(paths) >= FILES_LISTED_MAX for paths in changed):
        return None
    return frozenset(path for paths in changed for path in paths)


def _changed_paths(commit: Fields) -> Iterator[str]:
    for kind in ("added", "removed", "modified"):
        yield from (path for path in commit.members(kind) if isinstance(path, str))


def _report(event: Event, member: str) -> Signals:
    report = event.payload.inner(member)
    app, sha = report.inner_or_none("app"), Sha(report.text("head_sha"))
    if app is not None and app.id_or_none("id") == event.own.id:
        return ()
    return (CheckReported(event.where, sha, _news_of(report.text_or("conclusion", None))),)


def _ci_run_ended(event: Event) -> Signals:
    run = event.payload.inner("workflow_run")
    attempt = int(run.id_or_none("run_attempt") or 1)
    ended = CiRunEnded(event.where, run.id("id"), attempt, _own_branch_of(event, run))
    return (*_report(event, "workflow_run"), ended)


def _own_branch_of(event: Event, run: Fields) -> str:
    """Return the branch of a run; empty if a fork has it, whose branch may have any name."""
    head = run.inner_or_none("head_repository")
    is_own = head is not None and head.id("id") == event.where.id.id
    return run.words("head_branch") if is_own else ""


def _status(event: Event) -> Signals:
    state = event.payload.text_or("state", None)
    news = _news_of(None if state == "pending" else state)
    return (CheckReported(event.where, Sha(event.payload.text("sha")), news),)


def _news_of(conclusion: str | None) -> News:
    """Return the news of a report, without a difference between revocable and final failures."""
    if conclusion is None:
        return News.BEGAN
    return News.PASSED if conclusion == "success" else News.OTHER


def _rules(event: Event) -> Signals:
    # Events of a whole organization have no repository.
    is_of_repository = event.payload.inner_or_none("repository") is not None
    return (RulesChanged(event.where),) if is_of_repository else ()


def _repository_edited(event: Event) -> Signals:
    changes = event.payload.inner_or_none("changes")
    changed = None if changes is None else changes.inner_or_none("default_branch")
    if changed is None:
        return (RepositoryChanged(event.where),)
    branch = event.payload.inner("repository").text("default_branch")
    return (DefaultBranchRenamed(event.where, changed.text("from"), branch),)


def _repository_changed(event: Event) -> Signals:
    return (RepositoryChanged(event.where),)


def _repository_lost(why: RemovedWhy) -> Translation:
    return lambda event: (RepositoryRemoved(event.where, why),)


def _added(member: str) -> Translation:
    return lambda event: tuple(map(RepositoryAdded, event.repositories(member)))


def _removed(member: str) -> Translation:
    return lambda event: tuple(
        RepositoryRemoved(where, RemovedWhy.UNINSTALLED) for where in event.repositories(member)
    )


def _access(event: Event, *, suspended: bool) -> Signals:
    installation = event.payload.inner_or_none("installation")
    account = None if installation is None else installation.inner_or_none("account")
    owner = (account or event.payload.inner("account")).id("id")
    return (AccessChanged(event.delivery.host, owner, suspended),)


def _no_signals(_event: Event) -> Signals:
    return ()


def _reports(event: str, *actions: str) -> dict[tuple[str, str | None], Translation]:
    return _each(event, *actions, by=partial(_report, member=event))


def _each(event: str, *actions: str, by: Translation) -> dict[tuple[str, str | None], Translation]:
    return {(event, action): by for action in actions}


COMMANDS = frozenset(
    {
        ("issue_comment", "created"),
        ("issue_comment", "edited"),
        ("check_run", "requested_action"),
        ("check_run", "rerequested"),
        ("pull_request_review", "submitted"),
        ("pull_request", "labeled"),
        ("pull_request", "unlabeled"),
        ("pull_request", "enqueued"),
        ("pull_request", "dequeued"),
    }
)
"""Deliveries that may contain a person's command."""

SWEPT = frozenset({"check_run", "check_suite", "status"})
"""Events whose facts the sweeps read every minute or so.

Not `workflow_run`: the sweep of ended CI runs skips repositories without a queue and without
tests, and such an event may announce the first test results of one.
"""


def lost_with(event: str, action: str | None) -> Lost:
    """Return what is lost when a delivery of this kind never arrives."""
    if (event, action) in COMMANDS:
        return Lost.COMMAND
    translation = TABLE.get((event, action), _no_signals)
    return Lost.SWEPT if event in SWEPT or translation is _no_signals else Lost.FACT


TABLE: Mapping[tuple[str, str | None], Translation] = {
    ("issue_comment", "created"): _comment,
    ("issue_comment", "edited"): _comment_edited,
    ("check_run", "requested_action"): _button_pressed,
    ("pull_request_review", "submitted"): _review_submitted,
    **_each("pull_request_review", "edited", "dismissed", by=_pull),
    **_each("pull_request_review_thread", "resolved", "unresolved", by=_pull),
    **_each("pull_request", "opened", "edited", "reopened", "closed", "synchronize", by=_pull),
    **_each("pull_request", "ready_for_review", "converted_to_draft", "stacked", by=_pull),
    **_each("pull_request", "auto_merge_enabled", "auto_merge_disabled", by=_pull),
    **_each("pull_request", "labeled", "unlabeled", by=_label),
    ("pull_request", "enqueued"): _enqueued,
    ("pull_request", "dequeued"): _dequeued,
    ("check_run", "rerequested"): _rerequested,
    **_each("check_run", "created", "completed", by=partial(_report, member="check_run")),
    **_reports("check_suite", "completed", "rerequested"),
    **_reports("workflow_run", "requested", "in_progress"),
    ("workflow_run", "completed"): _ci_run_ended,
    ("status", None): _status,
    ("push", None): _push,
    **_each("repository_ruleset", "created", "edited", "deleted", by=_rules),
    **_each("branch_protection_rule", "created", "edited", "deleted", by=_rules),
    ("repository", "created"): lambda event: (RepositoryAdded(event.where),),
    ("repository", "edited"): _repository_edited,
    **_each("repository", "renamed", "archived", "unarchived", by=_repository_changed),
    **_each("repository", "privatized", "publicized", by=_repository_changed),
    ("repository", "deleted"): _repository_lost(RemovedWhy.DELETED),
    ("repository", "transferred"): _repository_lost(RemovedWhy.TRANSFERRED),
    ("installation", "created"): _added("repositories"),
    ("installation", "suspend"): partial(_access, suspended=True),
    # What GitHub lists of a deleted installation may not be all that we know of it.
    **_each(
        "installation",
        "deleted",
        "unsuspend",
        "new_permissions_accepted",
        by=partial(_access, suspended=False),
    ),
    ("installation_repositories", "added"): _added("repositories_added"),
    ("installation_repositories", "removed"): _removed("repositories_removed"),
    ("installation_target", "renamed"): partial(_access, suspended=False),
    ("github_app_authorization", "revoked"): _no_signals,
    ("ping", None): _no_signals,
}
