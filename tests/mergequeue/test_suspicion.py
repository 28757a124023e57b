"""What is believed of a pull request whose tests failed, with its evidence."""

from dataclasses import replace

import pytest

from service.mergequeue.engine.config import BatchSizing, QueueConfig
from service.mergequeue.engine.explaining import explain
from service.mergequeue.engine.model import Entry, MergeQueue
from service.mergequeue.engine.policy import suspecting
from service.mergequeue.engine.policy.belief import Belief
from service.mergequeue.engine.records import Record, Suspect, cleared, merged
from service.mergequeue.engine.reported import Rates
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState
from service.mergequeue.engine.suspicion import FailedTogether, Fate, Other, Suspicion
from service.mergequeue.wording import notices
from service.vocabulary import SYSTEM
from tests.mergequeue import test_explain
from tests.mergequeue.scenario import FILES, Play
from tests.mergequeue.stage import START
from tests.mergequeue.test_explain import an_entry

PRIOR = 0.06


def a_record(run: str, *tested: int, base: tuple[int, ...] = ()) -> Record:
    """A failed run of these pull requests, on top of those."""
    suspects = [Suspect(f"e{pr}", pr, PRIOR, is_tested=False) for pr in base]
    suspects += [Suspect(f"e{pr}", pr, PRIOR, is_tested=True) for pr in tested]
    return Record(run, tuple(suspects), ("unit",))


def a_queue(records: tuple[Record, ...], *entries: Entry) -> MergeQueue:
    return replace(test_explain.a_queue(QueueConfig(), *entries), records=records)


def believed(records: tuple[Record, ...], *entries: Entry, pr: int = 1) -> Suspicion | None:
    return explain.explain(a_queue(records, *entries), pr, START).suspicion


def test_it_has_the_failures_alone_and_those_with_others_and_what_became_of_these() -> None:
    records: tuple[Record, ...] = (a_record("r1", 1, 4, base=(2, 3, 5)), a_record("r2", 1))
    records = cleared(merged(records, ["e2"]), ["e4"])
    passed = an_entry(5, EntryState.TESTS_PASSED)
    found = believed(records, an_entry(1), an_entry(4), passed)
    assert found is not None
    assert (found.alone, found.together) == (1, 1)
    (together,) = found.newest_together
    assert together.run == "r1"
    assert together.others == (
        Other(2, Fate.MERGED),
        Other(3, Fate.LEFT),
        Other(5, Fate.PASSED),
        Other(4, Fate.PASSED),
    )


def test_one_that_waits_for_a_verdict_is_undecided() -> None:
    found = believed((a_record("r1", 1, 2),), an_entry(1), an_entry(2))
    assert found is not None
    assert found.newest_together == (FailedTogether("r1", (Other(2, Fate.UNDECIDED),)),)


def test_a_new_submission_of_one_that_left_is_another_one() -> None:
    found = believed((a_record("r1", 1, 2),), an_entry(1), an_entry(2, id="new"))
    assert found is not None
    assert found.newest_together[0].others == (Other(2, Fate.LEFT),)


def test_the_percentage_is_whole_and_100_only_after_a_verdict() -> None:
    records = tuple(a_record(f"r{count}", 1) for count in range(3))
    found = believed(records, an_entry(1))
    assert found is not None
    assert found.percent == 99
    charges = Belief(records, Rates()).charges_against("e1")
    convicted = suspecting.build_suspicion(
        charges, 0.9999, lambda one: Fate.UNDECIDED, is_convicted=True
    )
    assert convicted.percent == 100
    believed_good = suspecting.build_suspicion(
        charges, 0.001, lambda one: Fate.UNDECIDED, is_convicted=False
    )
    assert believed_good.percent == 1


@pytest.mark.parametrize(
    ("alone", "foreseen", "conflict", "is_convicted"),
    [
        (1, 0.0, 0.03, False),
        (1, 0.8, 0.03, True),
        (2, 0.0, 0.03, True),
        # Conflicts are so frequent that there are no early looks.
        (1, 0.0, 0.051, True),
    ],
)
def test_a_queue_with_early_looks_rejects_by_more_certainty(
    alone: int, foreseen: float, conflict: float, *, is_convicted: bool
) -> None:
    records = tuple(a_record(f"r{count}", 1) for count in range(alone))
    records += cleared((a_record("r9", 1, base=(2,)),), ["e2"])
    config = QueueConfig(
        batch=True, batch_sizing=BatchSizing.ADAPTIVE, can_optimistically_merge=True
    )
    # It is broken rather than in conflict by 5 to 3 (or 5.1); a failure alone makes that 250 to 3.
    entry = an_entry(1, p_fail=0.05)
    rates = Rates(conflict=conflict, foreseen=foreseen)
    queue = replace(test_explain.a_queue(config, entry), records=records, rates=rates)
    assert suspecting.is_convicted(Draft(queue, START, SYSTEM), entry) is is_convicted


def test_there_is_none_of_one_that_only_was_in_a_base_or_is_cleared() -> None:
    records = cleared((a_record("r1", 1, base=(2,)), a_record("r2", 3)), ["e3"])
    entries = (an_entry(1), an_entry(2), an_entry(3))
    assert believed(records, *entries, pr=1) is not None
    assert believed(records, *entries, pr=2) is None
    assert believed(records, *entries, pr=3) is None


def test_what_is_listed_is_bounded() -> None:
    ahead = tuple(range(2, 40))
    records = tuple(a_record(f"r{count}", 1, base=ahead) for count in range(8))
    found = believed(records, an_entry(1))
    assert found is not None
    assert found.together == 8
    assert [one.run for one in found.newest_together] == ["r5", "r6", "r7"]
    for one in found.newest_together:
        assert (len(one.others), one.more) == (suspecting.OTHERS_MAX, 38 - suspecting.OTHERS_MAX)


def test_a_rejection_keeps_what_was_believed_and_its_comment_says_it() -> None:
    views = [step.views for step in Play(FILES["adaptive-verdict"]).steps()][-1]
    rejected = {view.entry.pr: view for view in views if view.entry.state is EntryState.FAILED}
    kept = {pr: view.explained.suspicion for pr, view in rejected.items()}
    assert [one and one.alone for one in kept.values()] == [2, 1, 3]
    told = notices.failure_comment(rejected[1], is_above=False)
    assert "99 % to blame: failed alone twice." in told
