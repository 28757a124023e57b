"""From deliveries to signals (docs/design/provider.md 3)."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from bot.github import translate
from bot.github.reading import Unreadable
from bot.github.translate import OwnApp
from service.provenance import ProviderTime
from service.provider import signals
from service.provider.signals import (
    AccessChanged,
    AskCancel,
    Asked,
    AskForeign,
    AskRetry,
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
    News,
    NoticeEdited,
    PullRequestChanged,
    RemovedWhy,
    RepositoryAdded,
    RepositoryChanged,
    RepositoryRemoved,
    RulesChanged,
    ShownPullRequest,
    Where,
)
from service.vocabulary import Actor, ActorKind, Channel, RepoId, RepoRef, Sha

HOST = "github.com"
OWN = OwnApp(id="77", slug="headgate")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HEAD, OTHER = Sha("a" * 40), Sha("b" * 40)
WHERE = Where(RepoId(HOST, "5"), RepoRef(HOST, "octo", "widgets"))
ALICE = {"login": "alice", "id": 11, "type": "User"}
ROBOT = {"login": "renovate[bot]", "id": 12, "type": "Bot"}
OURSELVES = {"login": "headgate[bot]", "id": 13, "type": "Bot"}
REPOSITORY = {"id": 5, "full_name": "octo/widgets", "default_branch": "trunk"}

ALWAYS_SENT = {
    "installation",
    "installation_repositories",
    "installation_target",
    "github_app_authorization",
    "ping",
}


def signals_of(event, action=None, **payload):
    return translate.signals_of(a_delivery(event, action, **payload), OWN)


def a_delivery(event, action=None, **payload):
    content = {"sender": ALICE, "repository": REPOSITORY, **payload}
    if action is not None:
        content["action"] = action
    return Delivery(HOST, "d-1", event, action, "5", json.dumps(content).encode(), NOW)


def a_comment(body="/merge", *, by=ALICE, app=None, pull=True):
    comment = {"id": 9, "user": by, "body": body, "created_at": "2026-01-02T03:00:00Z"}
    if app is not None:
        comment["performed_via_github_app"] = {"id": app}
    issue = {"number": 3, **({"pull_request": {"url": "…"}} if pull else {})}
    return {"comment": comment, "issue": issue}


def a_pull(*, branch="topic", repo=5, state="open", merged_at=None, **more):
    head = {"sha": HEAD, "ref": branch, "repo": {"id": repo} if repo else None}
    return {
        "pull_request": {
            "number": 3,
            "head": head,
            "state": state,
            "merged_at": merged_at,
            "base": {"ref": "main"},
            "updated_at": "2026-01-02T03:00:00Z",
        },
        **more,
    }


def a_ci_run(head_repo):
    """A run of CI for `topic`, a branch of this repository, which is 5, or of another one."""
    source = {"id": head_repo} if head_repo else None
    run = {"id": 4, "run_attempt": 3, "head_branch": "topic", "head_repository": source, **SUCCESS}
    return {"workflow_run": run}


def a_review(body="/merge"):
    review = {"id": 8, "user": ALICE, "body": body, "submitted_at": "2026-01-02T03:00:00Z"}
    return a_pull(review=review)


def test_the_table_holds_every_event_we_subscribe_to_and_no_other():
    app = yaml.safe_load((Path(__file__).parents[2] / "app.yml").read_text("utf-8"))
    events = {event for event, _ in translate.TABLE}
    assert events == set(app["default_events"]) | ALWAYS_SENT


def test_every_kind_of_signal_is_made_somewhere():
    made = {
        type(signal)
        for event, action, payload, _ in TOLD
        for signal in signals_of(event, action, **payload)
    }
    assert made == set(signals.Signal.__args__)


def asked(*, kind=ActorKind.PERSON, login="alice", id="11", source=AskSource.COMMENT, key="9"):
    actor = Actor(kind, login, id, Channel.COMMENT)
    return Asked(WHERE, 3, actor, AskSubmit(), source, key, AT)


AT = ProviderTime(datetime(2026, 1, 2, 3, tzinfo=UTC))
SHOWN = ShownPullRequest("main", is_fork=False, is_closed=False, at=AT)
CHANGED = PullRequestChanged(WHERE, 3, HEAD, shown=SHOWN)
PUSHED = replace(CHANGED, pushed_onto="main")
OF_FORK = replace(CHANGED, shown=replace(SHOWN, is_fork=True))
CLOSED = replace(CHANGED, shown=replace(SHOWN, is_closed=True))
BEGAN, PASSED, OTHER_NEWS = (CheckReported(WHERE, HEAD, news) for news in News)
SUCCESS = {"head_sha": HEAD, "conclusion": "success"}
ALICE_ACTS = Actor(ActorKind.PERSON, "alice", "11")
TWO = [{"id": 6, "full_name": "octo/a"}, {"id": 7, "full_name": "octo/b"}]
A, B = (
    Where(RepoId(HOST, "6"), RepoRef(HOST, "octo", "a")),
    Where(RepoId(HOST, "7"), RepoRef(HOST, "octo", "b")),
)
PUSH = {"ref": "refs/heads/release/2", "after": OTHER, "deleted": False, "forced": True}
COMMITS = [
    {"added": ["a"], "removed": ["b"], "modified": []},
    {"added": [], "removed": [], "modified": ["c/d"]},
]
TOUCHED = {**PUSH, "forced": False, "commits": COMMITS}
MANY = {**TOUCHED, "commits": COMMITS * 1024}
HALF_OF_CUT = [f"{number}.txt" for number in range(1500)]
MANY_FILES = {**TOUCHED, "commits": [{"added": HALF_OF_CUT, "modified": HALF_OF_CUT}, *COMMITS]}
GONE = {**PUSH, "deleted": True, "after": "0" * 40}
INSTALLED = {"installation": {"id": 1, "account": {"id": 99}}}
REREAD = AccessChanged(HOST, "99", False)
LABEL = {"label": {"name": "headgate-submit"}}


LABELLED = LabelChanged(WHERE, 3, "headgate-submit")


BOXES = "- [ ] Remove <!-- headgate:box=cancel -->\n- [ ] Restart <!-- headgate:box=retry -->\n"
ONE_TICK, TWO_TICKS = BOXES.replace("[ ]", "[x]", 1), BOXES.replace("[ ]", "[x]")


def an_edit(after, before=BOXES, **more):
    """An edit of a comment of ours."""
    edited = a_comment(after, by=OURSELVES)
    edited["comment"]["updated_at"] = "2026-01-02T03:00:00Z"
    return {**edited, "changes": {"body": {"from": before}}, **more}


def pressed(identifier, app=77):
    """A button of a check run that was pressed."""
    suite = {"updated_at": "2026-01-02T03:00:00Z"}
    run = {"head_sha": HEAD, "external_id": "s-1", "app": {"id": app}, "check_suite": suite}
    return {"check_run": run, "requested_action": {"identifier": identifier}}


BY_CONTENT = "by its content"
EDITED = NoticeEdited(WHERE, "9")


def by_box(ask, channel=Channel.CHECKBOX):
    actor = Actor(ActorKind.PERSON, "alice", "11", channel)
    return Asked(WHERE, 3, actor, ask, AskSource.CHECKBOX, BY_CONTENT, AT)


def by_button(ask):
    actor = Actor(ActorKind.PERSON, "alice", "11", Channel.BUTTON)
    return ButtonPressed(WHERE, "s-1", actor, ask, BY_CONTENT, AT)


TOLD = [
    ("issue_comment", "edited", an_edit(ONE_TICK), (EDITED, by_box(AskCancel()))),
    ("issue_comment", "edited", an_edit(TWO_TICKS, ONE_TICK), (EDITED, by_box(AskRetry()))),
    ("issue_comment", "edited", an_edit(TWO_TICKS), (EDITED,)),
    ("issue_comment", "edited", an_edit(BOXES, ONE_TICK), (EDITED,)),
    ("issue_comment", "edited", an_edit(ONE_TICK.replace("cancel", "launch")), (EDITED,)),
    ("issue_comment", "edited", an_edit(ONE_TICK, changes={}), (EDITED,)),
    ("check_run", "requested_action", pressed("retry"), (by_button(AskRetry()),)),
    (
        "check_run",
        "requested_action",
        pressed("requeue"),
        (by_button(AskSubmit(sha=HEAD)),),
    ),
    ("issue_comment", "created", a_comment(), (asked(),)),
    (
        "issue_comment",
        "created",
        a_comment(by=ROBOT),
        (asked(kind=ActorKind.BOT, login="renovate[bot]", id="12"),),
    ),
    (
        "pull_request_review",
        "submitted",
        a_review(),
        (asked(source=AskSource.REVIEW, key="8"), CHANGED),
    ),
    ("pull_request_review", "submitted", a_review(None), (CHANGED,)),
    ("pull_request_review", "dismissed", a_review(), (CHANGED,)),
    ("pull_request_review", "edited", a_review(), (CHANGED,)),
    ("pull_request_review_thread", "resolved", a_pull(), (CHANGED,)),
    ("pull_request_review_thread", "unresolved", a_pull(), (CHANGED,)),
    *(
        ("pull_request", action, a_pull(), (PUSHED,))
        for action in ("opened", "reopened", "synchronize")
    ),
    *(("pull_request", action, a_pull(), (CHANGED,)) for action in ("edited", "closed")),
    ("pull_request", "synchronize", a_pull(repo=6), (OF_FORK,)),
    ("pull_request", "closed", a_pull(state="closed"), (CLOSED,)),
    (
        "pull_request",
        "closed",
        a_pull(state="closed", merged_at="2026-01-02T03:00:00Z"),
        (CHANGED,),
    ),
    ("pull_request", "converted_to_draft", a_pull(), (CHANGED,)),
    ("pull_request", "ready_for_review", a_pull(repo=None), (OF_FORK,)),
    ("pull_request", "synchronize", a_pull(branch="headgate/merge/x", repo=6), (OF_FORK,)),
    ("pull_request", "labeled", a_pull(**LABEL), (LABELLED, CHANGED)),
    ("pull_request", "unlabeled", a_pull(**LABEL), (LABELLED, CHANGED)),
    ("pull_request", "labeled", a_pull(**LABEL, sender=OURSELVES), (LABELLED,)),
    *(
        ("check_run", action, {"check_run": {"head_sha": HEAD, "app": {"id": 4}}}, (BEGAN,))
        for action in ("created", "rerequested")
    ),
    ("check_run", "completed", {"check_run": {**SUCCESS, "app": {"id": 4}}}, (PASSED,)),
    ("check_suite", "completed", {"check_suite": {**SUCCESS, "app": None}}, (PASSED,)),
    ("workflow_run", "in_progress", {"workflow_run": {"head_sha": HEAD}}, (BEGAN,)),
    (
        "workflow_run",
        "completed",
        {"workflow_run": {"id": 16_000_000_001, "head_sha": HEAD, "conclusion": "skipped"}},
        (OTHER_NEWS, CiRunEnded(WHERE, "16000000001", 1, "")),
    ),
    ("workflow_run", "completed", a_ci_run(5), (PASSED, CiRunEnded(WHERE, "4", 3, "topic"))),
    ("workflow_run", "completed", a_ci_run(6), (PASSED, CiRunEnded(WHERE, "4", 3, ""))),
    ("workflow_run", "completed", a_ci_run(None), (PASSED, CiRunEnded(WHERE, "4", 3, ""))),
    ("status", None, {"sha": HEAD, "state": "pending"}, (BEGAN,)),
    ("status", None, {"sha": HEAD, "state": "success"}, (PASSED,)),
    ("status", None, {"sha": HEAD, "state": "error"}, (OTHER_NEWS,)),
    ("push", None, PUSH, (BranchMoved(WHERE, "release/2", OTHER, ALICE_ACTS, True),)),
    (
        "push",
        None,
        TOUCHED,
        (BranchMoved(WHERE, "release/2", OTHER, ALICE_ACTS, False, frozenset({"a", "b", "c/d"})),),
    ),
    *(
        ("push", None, cut, (BranchMoved(WHERE, "release/2", OTHER, ALICE_ACTS, False),))
        for cut in (MANY, MANY_FILES)
    ),
    ("push", None, GONE, (BranchGone(WHERE, "release/2", ALICE_ACTS),)),
    ("repository_ruleset", "edited", {}, (RulesChanged(WHERE),)),
    ("branch_protection_rule", "created", {}, (RulesChanged(WHERE),)),
    ("repository", "renamed", {}, (RepositoryChanged(WHERE),)),
    ("repository", "archived", {}, (RepositoryChanged(WHERE),)),
    ("repository", "edited", {"changes": {}}, (RepositoryChanged(WHERE),)),
    (
        "repository",
        "edited",
        {"changes": {"default_branch": {"from": "main"}}},
        (DefaultBranchRenamed(WHERE, "main", "trunk"),),
    ),
    ("repository", "created", {}, (RepositoryAdded(WHERE),)),
    *(
        ("repository", action, {}, (RepositoryChanged(WHERE),))
        for action in ("unarchived", "privatized", "publicized")
    ),
    ("repository", "deleted", {}, (RepositoryRemoved(WHERE, RemovedWhy.DELETED),)),
    ("repository", "transferred", {}, (RepositoryRemoved(WHERE, RemovedWhy.TRANSFERRED),)),
    (
        "installation",
        "created",
        {"repositories": TWO},
        (RepositoryAdded(A), RepositoryAdded(B)),
    ),
    ("installation", "deleted", {**INSTALLED, "repositories": TWO}, (REREAD,)),
    ("installation", "suspend", INSTALLED, (AccessChanged(HOST, "99", True),)),
    ("installation", "unsuspend", INSTALLED, (AccessChanged(HOST, "99", False),)),
    (
        "installation",
        "new_permissions_accepted",
        INSTALLED,
        (AccessChanged(HOST, "99", False),),
    ),
    (
        "installation_repositories",
        "added",
        {"repositories_added": TWO},
        (RepositoryAdded(A), RepositoryAdded(B)),
    ),
    (
        "installation_repositories",
        "removed",
        {"repositories_removed": TWO[:1]},
        (RepositoryRemoved(A, RemovedWhy.UNINSTALLED),),
    ),
    (
        "installation_target",
        "renamed",
        {"account": {"id": 99}},
        (AccessChanged(HOST, "99", False),),
    ),
]


@pytest.mark.parametrize(("event", "action", "payload", "told"), TOLD)
def test_a_delivery_tells(event, action, payload, told):
    assert tuple(map(without_digest, signals_of(event, action, **payload))) == told


def without_digest(signal):
    """A press without the id that its content gives it."""
    match signal:
        case ButtonPressed():
            return replace(signal, id=BY_CONTENT)
        case Asked(source=AskSource.CHECKBOX):
            return replace(signal, source_id=BY_CONTENT)
    return signal


@pytest.mark.parametrize(
    ("event", "action", "payload"),
    [
        ("issue_comment", "edited", an_edit(ONE_TICK)),
        ("check_run", "requested_action", pressed("retry")),
    ],
)
def test_a_press_is_known_by_its_content_and_not_by_the_id_of_its_delivery(event, action, payload):
    one = a_delivery(event, action, **payload)
    copied = replace(one, id="d-2")
    other = a_delivery(event, action, **payload, installation={"id": 1})
    same, again, different = (translate.signals_of(each, OWN)[-1] for each in (one, copied, other))
    assert same == again
    assert same != different


OWN_RUN = {"check_run": {"head_sha": HEAD, "app": {"id": 77}}}
UNHEARD = [
    ("issue_comment", "created", a_comment("nice work")),
    ("issue_comment", "created", a_comment(pull=False)),
    ("issue_comment", "created", a_comment(by=None)),
    ("issue_comment", "created", a_comment(by=OURSELVES)),
    ("issue_comment", "created", a_comment(app=77)),
    ("issue_comment", "edited", a_comment()),
    ("issue_comment", "edited", an_edit(ONE_TICK, sender=OURSELVES)),
    ("issue_comment", "edited", an_edit(ONE_TICK, sender=ROBOT)),
    ("issue_comment", "deleted", a_comment()),
    ("pull_request", "assigned", a_pull()),
    ("pull_request", "opened", a_pull(branch="headgate/merge/pr-3/x")),
    ("pull_request", "closed", a_pull(branch="headgate/merge/pr-3/x")),
    ("pull_request", "unlabeled", a_pull(**LABEL, sender=OURSELVES)),
    ("check_run", "completed", OWN_RUN),
    ("check_run", "requested_action", pressed("launch")),
    ("check_run", "requested_action", pressed("retry", app=78)),
    ("push", None, {**PUSH, "ref": "refs/tags/v1"}),
    ("push", None, {**PUSH, "ref": "refs/heads/headgate/merge/x", "sender": OURSELVES}),
    ("push", None, {**GONE, "ref": "refs/heads/headgate/temp/x", "sender": OURSELVES}),
    ("repository_ruleset", "created", {"repository": None}),
    ("github_app_authorization", "revoked", {}),
    ("ping", None, {}),
    ("star", "created", {}),
    ("brand_new", None, {}),
]


@pytest.mark.parametrize(("event", "action", "payload"), UNHEARD)
def test_what_is_none_of_our_business_tells_nothing(event, action, payload):
    assert signals_of(event, action, **payload) == ()


def test_others_pushing_onto_our_branches_and_us_landing_are_told():
    ours = {**PUSH, "ref": "refs/heads/headgate/merge/x"}
    assert signals_of("push", None, **ours)[0].branch == "headgate/merge/x"
    landed = signals_of("push", None, **PUSH, sender=OURSELVES)[0]
    assert landed.actor.kind is ActorKind.SELF


@pytest.mark.parametrize(("app", "told"), [(77, (EDITED, by_box(AskCancel()))), (78, ())])
def test_a_comment_of_ours_is_known_by_the_app_before_our_name_is(app, told):
    edit = an_edit(ONE_TICK)
    edit["comment"]["performed_via_github_app"] = {"id": app}
    unnamed = OwnApp(id=OWN.id, slug="")
    signals = translate.signals_of(a_delivery("issue_comment", "edited", **edit), unnamed)
    assert tuple(map(without_digest, signals)) == told


def test_a_missing_sender_is_a_ghost():
    moved = signals_of("push", None, **PUSH, sender=None)[0]
    assert moved.actor == Actor(ActorKind.PERSON, "ghost")


def test_ids_may_come_as_text():
    repository = {**REPOSITORY, "id": "18446744073709551615"}
    told = signals_of("status", None, sha=HEAD, repository=repository)[0]
    assert told.where.id == RepoId(HOST, "18446744073709551615")


def test_a_field_that_is_gone_is_named():
    with pytest.raises(Unreadable, match=r"check_run\.head_sha: missing"):
        signals_of("check_run", "completed", check_run={})


def commented_on(number):
    payload = a_comment()
    return {**payload, "issue": {**payload["issue"], "number": number}}


@pytest.mark.parametrize("number", [10**18, "10e3", "", None, True, [1]])
def test_a_number_that_nothing_can_store_is_named(number):
    with pytest.raises(Unreadable, match=r"issue\.number: "):
        signals_of("issue_comment", "created", **commented_on(number))


STACK = {"base": {"ref": "main"}, "number": 1}


@pytest.mark.parametrize(
    ("event", "action", "stack", "shows_none"),
    [
        ("pull_request", "opened", None, True),
        ("pull_request", "synchronize", None, True),
        ("pull_request", "synchronize", STACK, False),
        ("pull_request", "edited", None, False),
        ("pull_request_review", "submitted", None, False),
    ],
)
def test_only_a_new_head_shows_that_it_is_in_no_stack(event, action, stack, shows_none):
    content = a_pull()
    content["pull_request"]["stack"] = stack
    assert translate.shows_no_stack(a_delivery(event, action, **content)) is shows_none


@pytest.mark.parametrize(
    ("action", "reason", "meant"),
    [
        ("enqueued", None, AskSubmit()),
        ("dequeued", "MANUAL", AskCancel()),
        ("dequeued", "MERGE", None),
        ("dequeued", "CI_FAILURE", None),
    ],
)
def test_githubs_own_queue_is_another_queue(action, reason, meant):
    told = signals_of("pull_request", action, **a_pull(reason=reason))
    commands = [one for one in told if isinstance(one, Asked)]
    if meant is None:
        assert commands == []
        return
    (command,) = commands
    assert command.source is AskSource.PROVIDER_QUEUE
    assert command.ask == AskForeign("GitHub", action, meant)
    assert (command.number, command.actor.login) == (3, "alice")
    own = a_pull(branch="headgate/merge/pr-3/run", reason=reason)
    assert signals_of("pull_request", action, **own) == ()
