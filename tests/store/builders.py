"""Values of the engine with one default each, so that a test shows only what differs."""

from datetime import UTC, datetime, timedelta
from typing import Any

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Entry, Green, Member, Run, Tip
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import EntryState, RunKind, RunPhase, RunStatus
from service.vocabulary import (
    Actor,
    ActorKind,
    Channel,
    Check,
    CheckKind,
    CheckOutcome,
    Mergeability,
    PullRequestState,
    RequiredName,
    RequiredSource,
    Sha,
)

NOW = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
ANN = Actor(ActorKind.PERSON, "ann", "12", Channel.COMMENT)


def a_sha(pr: int) -> Sha:
    """The head of a pull request."""
    return Sha(f"{pr:040x}")


def an_entry(pr: int, **given) -> Entry:
    """A pending entry of this pull request, submitted by Ann."""
    facts = Facts(
        pr=pr,
        head=a_sha(pr),
        base="main",
        state=PullRequestState.OPEN,
        draft=False,
        mergeability=Mergeability.MERGEABLE,
        blockers=(),
        title=f"Change {pr}",
        author="ann",
        is_fork=False,
        own_checks=(a_check("unit"),),
    )
    default: dict[str, Any] = {
        "id": f"e{pr}",
        "pr": pr,
        "facts": facts,
        "head": a_sha(pr),
        "submitted_by": ANN,
        "submitted_at": NOW,
        "priority": 100,
        "no_batch": False,
        "state": EntryState.PENDING,
        "state_since": NOW,
        "reason": Reason.NOW_READY,
    }
    return Entry(**(default | given))


def a_check(name: str, outcome: CheckOutcome = CheckOutcome.PASSED) -> Check:
    """A report of the App 15368."""
    return Check(
        kind=CheckKind.SUITE_RUN,
        name=name,
        source_id="15368",
        group="71",
        id=f"id-{name}",
        outcome=outcome,
        raw="success",
        url=f"https://github.test/checks/{name}",
        completed_at=NOW,
    )


def a_run(run_id: str, prs: tuple[int, ...] = (3,), **given) -> Run:
    """A run in testing of these pull requests."""
    default: dict[str, Any] = {
        "id": run_id,
        "number": prs[0],
        "kind": RunKind.MAIN,
        "entries": tuple(Member(pr, f"e{pr}", a_sha(pr)) for pr in prs),
        "base": (),
        "base_tip": Tip(Sha("a" * 40), Sha("b" * 40)),
        "status": RunStatus.IN_PROGRESS,
        "phase": RunPhase.TESTING,
        "required": (RequiredName("unit"),),
        "required_source": RequiredSource.BRANCH_PROTECTION,
        "config": QueueConfig(),
        "created_at": NOW,
        "checks": (a_check("unit"), a_check("lint")),
    }
    return Run(**(default | given))


def a_green(tree: str, minutes: int) -> Green:
    """A tree that passed so long after now."""
    return Green(Sha(tree), "unit", "r1", Sha("c" * 40), NOW + timedelta(minutes=minutes))
