"""An audit finds each contradiction that is planted, and nothing in rows that agree."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.mergequeue.auditing.audit import audit
from service.mergequeue.auditing.findings import Audit, Rule, Weight
from service.mergequeue.auditing.records import (
    BranchCommit,
    EffectRecord,
    EntryRecord,
    History,
    MemberRecord,
    QueueRows,
    RunRecord,
    Statement,
    StepRecord,
)
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState, RunStatus
from service.mergequeue.landing_records import LandingRecord, LandingState
from service.vocabulary import MergeMethod, QueueRef, RepoRef, Sha

BEGAN = datetime(2026, 1, 31, tzinfo=UTC)
BOT = "1+headgate[bot]@users.noreply.github.com"


@dataclass(frozen=True)
class Scene:
    """Rows, history and evidence of a queue that landed two pull requests and tests a third."""

    rows: QueueRows
    history: History | None
    statements: tuple[Statement, ...]

    def audited(self, since: datetime | None = None) -> Audit:
        """The audit of it."""
        return audit(self.rows, self.history, self.statements, since)

    def found(self) -> list[Rule]:
        """The rules that it breaks, each once, worst first."""
        return list(dict.fromkeys(one.rule for one in self.audited().findings))


def landing(no: int, **more: Any) -> LandingRecord:
    """The landing of #no, which stands on the one before it."""
    given: dict[str, Any] = {
        "id": no,
        "queue_id": 1,
        "run": f"run{no}",
        "number": no,
        "position": 1,
        "pr": no,
        "entry": f"entry{no}",
        "head": f"head{no}",
        "mode": "CALL",
        "expected_parent": f"commit{no - 1}",
        "expected_tree": f"tree{no}",
        "tested_tree": f"tree{no}",
        "state": LandingState.LANDED,
        "permit_until": None,
        "landed_sha": f"commit{no}",
        "landed_tree": f"tree{no}",
        "evidence": None,
    }
    return LandingRecord(**{**given, **more})


def entry(no: int, **more: Any) -> EntryRecord:
    """The submission of #no, which has landed."""
    given: dict[str, Any] = {
        "id": f"entry{no}",
        "pr": no,
        "head": f"head{no}",
        "live": False,
        "state": EntryState.MERGED,
        "reason": "landed",
        "rank": None,
        "run": None,
        "verified_by": f"run{no}",
        "landed_sha": f"commit{no}",
    }
    return EntryRecord(**{**given, **more})


def run(no: int, **more: Any) -> RunRecord:
    """The run of #no, which has passed and is over."""
    step = StepRecord(no, Sha(f"tested{no}"), Sha(f"tree{no}"), contained=False)
    given: dict[str, Any] = {
        "id": f"run{no}",
        "live": False,
        "status": RunStatus.SUCCEEDED,
        "method": MergeMethod.MERGE_COMMIT,
        "is_parallel": False,
        "base_tree": Sha(f"tree{no - 1}"),
        "steps": (step,),
    }
    return RunRecord(**{**given, **more})


def commit(no: int, **more: Any) -> BranchCommit:
    """The commit by which #no landed."""
    given: dict[str, Any] = {
        "sha": f"commit{no}",
        "tree": f"tree{no}",
        "parents": (f"commit{no - 1}", f"head{no}"),
        "author": "headgate[bot]",
        "email": BOT,
        "subject": f"Merge pull request #{no}",
        "at": BEGAN + timedelta(days=no),
        "claims": False,
    }
    return BranchCommit(**{**given, **more})


def by_bob(no: int, **more: Any) -> BranchCommit:
    """A commit that bob pushed on top."""
    given = {"parents": (f"commit{no - 1}",), "author": "bob", "email": "bob@example.org"}
    return commit(no, **{**given, **more})


def statement(no: int, **more: Any) -> Statement:
    """What the evidence of #no says."""
    given: dict[str, Any] = {
        "sha": f"commit{no}",
        "pr": no,
        "commit": f"commit{no}",
        "tree": f"tree{no}",
        "base": f"commit{no - 1}",
        "head": f"head{no}",
        "expected_tree": f"tree{no}",
        "number": no,
        "position": 1,
    }
    return Statement(**{**given, **more})


TESTING = {"live": True, "state": EntryState.TESTING, "reason": "testing", "landed_sha": None}
SENT = EffectRecord(1, "land", "run3/land/3", "sent", is_open=True, claimed_by="one")


def scene(**rows: Any) -> Scene:
    """Two that landed and one that is tested; `rows` are lists that differ."""
    given: dict[str, Any] = {
        "queue": QueueRef(1, 1, 1, RepoRef("github.com", "octo", "widgets"), "main"),
        "provider_id": "7",
        "deleted": False,
        "tip": Sha("commit2"),
        "landing": None,
        "entries": (entry(1), entry(2), entry(3, **TESTING, rank=1, run="run3", verified_by=None)),
        "runs": {
            "run1": run(1),
            "run2": run(2),
            "run3": run(3, live=True, status=RunStatus.IN_PROGRESS),
        },
        "members": (MemberRecord("run3", "entry3", 3),),
        "landings": (landing(1), landing(2)),
        "effects": (SENT,),
        "instances": frozenset({"one"}),
    }
    history = History("a clone", Sha("commit0"), (commit(1), commit(2)))
    return Scene(QueueRows(**{**given, **rows}), history, (statement(1), statement(2)))


def with_history(*commits: BranchCommit, **more: Any) -> Callable[[Scene], Scene]:
    """The same with another history."""

    def change(before: Scene) -> Scene:
        assert before.history is not None
        return replace(before, history=replace(before.history, commits=commits, **more))

    return change


def with_rows(**rows: Any) -> Callable[[Scene], Scene]:
    """The same with other rows."""
    return lambda before: replace(before, rows=replace(before.rows, **rows))


def with_statements(*statements: Statement) -> Callable[[Scene], Scene]:
    """The same with other evidence."""
    return lambda before: replace(before, statements=statements)


def both(*changes: Callable[[Scene], Scene]) -> Callable[[Scene], Scene]:
    """Several changes, one after the other."""

    def change(before: Scene) -> Scene:
        for one in changes:
            before = one(before)
        return before

    return change


def entries(*last: EntryRecord) -> tuple[EntryRecord, ...]:
    """The two that have landed, and others."""
    return (entry(1), entry(2), *last)


PERMITTED = landing(3, state=LandingState.PERMITTED, landed_sha=None, landed_tree=None)
LANE = run(2, is_parallel=True, base_tree=Sha("tree0"))
BESIDE = landing(2, expected_tree="tree2alone", tested_tree="tree2alone")
BESIDE_STEP = StepRecord(2, Sha("tested2"), Sha("tree2alone"), contained=False)
BESIDE_ROWS = with_rows(
    landings=(landing(1), BESIDE),
    runs={
        "run1": run(1),
        "run2": replace(LANE, steps=(BESIDE_STEP,)),
        "run3": scene().rows.runs["run3"],
    },
)
SAYS_SO = with_statements(statement(1), statement(2, expected_tree="tree2alone"))

PLANTED: dict[Rule, Callable[[Scene], Scene]] = {
    Rule.LANDING_WITHOUT_COMMIT: with_rows(
        landings=(landing(1), landing(2), landing(3, landed_sha=None, landed_tree=None))
    ),
    Rule.LANDING_NOT_ON_BRANCH: with_history(commit(2, parents=("commit0", "head2"))),
    Rule.TREE_DIFFERS: with_history(commit(1), commit(2, tree="other")),
    Rule.CHANGE_DIFFERS: both(
        BESIDE_ROWS, SAYS_SO, with_history(commit(1), commit(2), same_changes={2: False})
    ),
    Rule.CHANGE_UNKNOWN: both(BESIDE_ROWS, SAYS_SO),
    Rule.PARENT_DIFFERS: with_history(
        commit(1), by_bob(9, parents=("commit1",)), commit(2, parents=("commit9", "head2"))
    ),
    Rule.HEAD_DIFFERS: with_history(commit(1), commit(2, parents=("commit1", "other"))),
    Rule.ORDER_DIFFERS: with_history(
        commit(2, parents=("commit0", "head2")), commit(1, parents=("commit2", "head1"))
    ),
    Rule.LANDED_TWICE: with_rows(landings=(landing(1), landing(2), landing(3, pr=2, head="head2"))),
    Rule.COMMIT_LANDED_TWICE: with_rows(
        landings=(landing(1), landing(2), landing(3, landed_sha="commit2", landed_tree="tree2"))
    ),
    Rule.COMMIT_WITHOUT_LANDING: with_history(commit(1), commit(2), commit(3)),
    Rule.PUSHED_PAST_THE_QUEUE: with_history(commit(1), commit(2), by_bob(3)),
    Rule.MERGED_BY_HAND: both(
        with_history(commit(1), commit(2), by_bob(3)),
        with_rows(entries=entries(entry(3, reason=Reason.MERGED_BY_HAND)), members=(), runs={}),
    ),
    Rule.LANDED_UNRECORDED: both(
        with_history(commit(1), commit(2), commit(3)), with_rows(returned={"commit3": 3})
    ),
    Rule.LANDED_UNPROVED: both(
        with_history(commit(1), commit(2), commit(3)),
        with_rows(
            landings=(landing(1), landing(2), landing(3, state=LandingState.MISMATCH)),
            entries=entries(entry(3, landed_sha=None)),
            members=(),
        ),
    ),
    Rule.CLONE_IS_BEHIND: with_history(commit(1)),
    Rule.NO_GIT: lambda before: replace(before, history=None),
    Rule.MERGED_WITHOUT_LANDING: with_rows(entries=entries(entry(3, landed_sha=None)), members=()),
    Rule.LANDED_WITHOUT_MERGED: with_rows(
        entries=(
            entry(1),
            entry(2, state=EntryState.FAILED, reason="pr_fault", landed_sha=None),
            scene().rows.entries[2],
        )
    ),
    Rule.LANDED_COMMIT_DIFFERS: with_rows(
        entries=(entry(1), entry(2, landed_sha="other"), scene().rows.entries[2])
    ),
    Rule.PERMIT_OF_ENDED_RUN: with_rows(
        landings=(landing(1), landing(2), replace(PERMITTED, run="run2"))
    ),
    Rule.TWO_OPEN_PERMITS: with_rows(
        landings=(landing(1), landing(2), PERMITTED, replace(PERMITTED, id=4, number=4))
    ),
    Rule.PERMIT_WITHOUT_LANDING: with_rows(landings=(landing(1), landing(2), PERMITTED)),
    Rule.LANDING_WITHOUT_ROWS: with_rows(landing=("run3", 3)),
    Rule.EVIDENCE_MISSING: with_statements(statement(1)),
    Rule.EVIDENCE_REFUTED: with_statements(statement(1), statement(2, fault="it is cut")),
    Rule.EVIDENCE_DIFFERS: with_statements(statement(1), statement(2, base="commit0")),
    Rule.EVIDENCE_WITHOUT_LANDING: with_statements(statement(1), statement(2), statement(3)),
    Rule.EVIDENCE_WAITS: with_statements(statement(1), statement(2, waits=True)),
    Rule.ENDED_BUT_LIVE: with_rows(entries=entries(entry(3, live=True, landed_sha=None))),
    Rule.ENDED_IN_LIVE_RUN: with_rows(
        entries=entries(
            entry(3, state=EntryState.CANCELLED, reason="cancelled", run="run3", landed_sha=None)
        )
    ),
    Rule.RUN_MISSING: with_rows(entries=entries(entry(3, **TESTING, run="gone"))),
    Rule.RUN_DISAGREES: with_rows(
        entries=entries(
            entry(3, **{**TESTING, "state": EntryState.TESTS_PASSED}, verified_by="run3")
        )
    ),
    Rule.TWO_LIVE_ENTRIES: with_rows(
        entries=entries(
            scene().rows.entries[2],
            entry(3, id="again", live=True, state=EntryState.PENDING, landed_sha=None),
        )
    ),
    Rule.TWO_OF_ONE_RANK: with_rows(
        entries=entries(
            scene().rows.entries[2],
            entry(4, live=True, state=EntryState.PENDING, landed_sha=None, rank=1),
        )
    ),
    Rule.MEMBER_WITHOUT_ENTRY: with_rows(members=(MemberRecord("run3", "gone", 3),)),
    Rule.DELETED_BUT_LIVE: with_rows(deleted=True),
    Rule.SENT_WITHOUT_INSTANCE: with_rows(instances=frozenset()),
    Rule.EFFECT_OPEN_OR_ENDED: with_rows(effects=(replace(SENT, is_open=False),)),
}


def test_rows_that_agree_have_no_finding() -> None:
    made = scene().audited()
    assert (made.findings, made.landings, made.commits) == ((), 2, 2)
    assert made.queue == "github.com/octo/widgets@main"


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.title)
def test_a_planted_contradiction_is_found(rule: Rule) -> None:
    assert rule in PLANTED[rule](scene()).found()


def test_a_landing_beside_other_lanes_that_brought_the_tested_change_is_no_finding() -> None:
    same = with_history(commit(1), commit(2), same_changes={2: True})
    assert both(BESIDE_ROWS, SAYS_SO, same)(scene()).found() == []


def test_the_commits_of_a_rebase_belong_to_its_landing() -> None:
    rebased = with_history(
        commit(1, parents=("commit0",)),
        by_bob(9, parents=("commit1",)),
        by_bob(2, parents=("commit9",)),
    )
    runs = {**scene().rows.runs, "run2": run(2, method=MergeMethod.REBASE)}
    assert both(rebased, with_rows(runs=runs))(scene()).found() == []


def test_a_head_that_added_nothing_shares_its_commit_with_the_one_below() -> None:
    step = StepRecord(2, Sha("commit1"), Sha("tree1"), contained=True)
    runs = {**scene().rows.runs, "run2": run(2, steps=(step,))}
    contained = landing(2, expected_tree="tree1", landed_sha="commit1", landed_tree="tree1")
    made = both(
        with_history(commit(1)),
        with_rows(
            runs=runs,
            landings=(landing(1), contained),
            entries=(entry(1), entry(2, landed_sha="commit1"), scene().rows.entries[2]),
        ),
        with_statements(statement(1)),
    )(scene())
    assert made.found() == [Rule.EVIDENCE_MISSING]


def test_findings_about_older_commits_are_left_out() -> None:
    made = with_history(commit(1), commit(2), by_bob(3))(scene())
    assert [one.rule for one in made.audited(BEGAN).findings] == [Rule.PUSHED_PAST_THE_QUEUE]
    assert made.audited(BEGAN + timedelta(days=9)).findings == ()


def test_a_push_past_the_queue_names_commit_and_author_and_is_no_fault() -> None:
    (found,) = with_history(commit(1), commit(2), by_bob(3))(scene()).audited().findings
    assert (found.commit, found.rule.weight) == ("commit3", Weight.NOTE)
    assert found.text == "commit3 by bob: Merge pull request #3"


def test_what_another_queue_of_the_repository_has_landed_is_no_finding() -> None:
    others = with_rows(others=frozenset({Sha("commit3")}))
    made = both(with_history(commit(1), commit(2), commit(3), by_bob(4)), others)(scene())
    assert [one.commit for one in made.audited().findings] == ["commit4"]


def test_a_commit_of_another_that_says_it_is_of_headgate_is_a_fault() -> None:
    found = with_history(commit(1), commit(2), by_bob(3, claims=True))(scene()).found()
    assert found == [Rule.COMMIT_WITHOUT_LANDING]
