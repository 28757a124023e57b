"""One queue, one pull request, one run; tests say only what differs."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import (
    Detail,
    Entry,
    Hold,
    MergeQueue,
    Named,
    RequiredSet,
    Tip,
)
from service.mergequeue.engine.past import Blamed, Over
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import EntryState
from service.text.markdown import Links
from service.vocabulary import (
    Actor,
    ActorKind,
    Channel,
    Mergeability,
    PullRequestState,
    RequiredName,
    RequiredSource,
    Sha,
)

NOW = datetime(2026, 3, 2, 14, 25, tzinfo=UTC)
SUBMITTED_AT = datetime(2026, 3, 2, 14, 2, 11, tzinfo=UTC)

HEAD = Sha("a1b2c3d4e5f60718293a4b5c6d7e8f9012345678")
NEW_HEAD = Sha("b2c3d4e5f60718293a4b5c6d7e8f9012345678a1")
LANDED = Sha("9f8e7d6c5b4a39281706f5e4d3c2b1a098765432")

LINKS = Links("https://github.com", "https://queue.example.org")

ALICE = Actor(ActorKind.PERSON, "alice", "101", Channel.COMMENT)
BOB = Actor(ActorKind.PERSON, "bob", "102", Channel.COMMENT)
TOKEN = Actor(ActorKind.TOKEN, "release script", "tok_1", Channel.API)
BOT = Actor(ActorKind.BOT, "dependabot[bot]", "103", Channel.COMMENT)

TEST = Named("test (3.12)", "https://github.com/octo/widgets/runs/71")
LINT = Named("lint", "https://ci.example.org/7")

REQUIRED = RequiredSet(
    (RequiredName("lint"), RequiredName("test (3.12)")), RequiredSource.BRANCH_PROTECTION
)

EVIDENCE = Detail(
    text="Waiting on code owner review.",
    run="6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10",
    checks=(TEST,),
    prs=(478,),
    paths=("cart/totals.py",),
    sha=NEW_HEAD,
)
"""A detail in which everything is known."""


def before(place: Reason, moved: Reason, codes: Iterable[Reason]) -> list[Reason]:
    """The codes with one of them moved before another, where a catalog shows it."""
    rest = [code for code in codes if code is not moved]
    index = rest.index(place)
    return [*rest[:index], moved, *rest[index:]]


def blamed(text: str) -> Blamed:
    """The failure for which a head was blamed, with this text in all that is foreign."""
    base, checks = Tip(NEW_HEAD, NEW_HEAD), (Named(text, "https://ci.example/1"),)
    return Blamed("r1", 12, HEAD, base, (), NOW, checks, 2, (text,), 2)


def over(text: str, until: datetime | None) -> Over:
    """A budget that is used up; with `until` it is one of CI minutes."""
    return Over(text, 600, 600, token=until is None, until=until)


REFUSALS = before(
    Reason.NO_REQUIRED_STATUSES,
    Reason.FORK_NEEDS_PERSON,
    [code for code in Reason if code.record.refused],
)


def minutes(count: float) -> timedelta:
    """A time span."""
    return timedelta(minutes=count)


def a_queue(**changes: Any) -> MergeQueue:
    """The queue of `main`, running, two slots."""
    queue = MergeQueue(
        id=1,
        uid="0b0e4f3e-9d0a-4b1a-8c54-b7de0f8c6c1e",
        branch="main",
        config=QueueConfig(concurrency=2, testing_timeout_minutes=60),
        required=REQUIRED,
    )
    return replace(queue, **changes)


def facts(**changes: Any) -> Facts:
    """Pull request 482 as it should be."""
    known = Facts(
        pr=482,
        head=HEAD,
        base="main",
        state=PullRequestState.OPEN,
        draft=False,
        mergeability=Mergeability.MERGEABLE,
        blockers=(),
        title="Cart totals",
        author="alice",
        is_fork=False,
    )
    return replace(known, **changes)


def an_entry(state: EntryState, reason: Reason, **changes: Any) -> Entry:
    """Pull request 482, submitted by alice at 14:02."""
    entry = Entry(
        id="0f8c6c1e-5b0e-4f3e-9d0a-3b1a54c1b7de",
        pr=482,
        facts=facts(),
        head=HEAD,
        submitted_by=ALICE,
        submitted_at=SUBMITTED_AT,
        priority=100,
        no_batch=False,
        state=state,
        state_since=SUBMITTED_AT,
        reason=reason,
    )
    return replace(entry, **changes)


def a_hold(reason: HoldReason, **changes: Any) -> Hold:
    """A hold by the system, since 13:50."""
    hold = Hold(
        id="hold-1",
        reason=reason,
        scope=reason.record.scope,
        by=Actor(ActorKind.SYSTEM, ""),
        text="",
        since=datetime(2026, 3, 2, 13, 50, tzinfo=UTC),
    )
    return replace(hold, **changes)


def replaced_config(**changes: Any) -> QueueConfig:
    """The settings of the queue with some of them changed."""
    return replace(a_queue().config, **changes)
