"""Record a failed run with the tests that failed in it (engine/blame.py says what they tell)."""

from collections.abc import Sequence

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.culprits.verdict import Standing
from service.mergequeue.engine.model import Named, Run
from service.mergequeue.engine.records import FailedTest, Record
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.state import ledger
from service.mergequeue.engine.state.draft import Draft
from service.vocabulary import CheckOutcome, Explanation

NOTHING_KNOWN = Evidence(attempt=0, explanations={})


def note_failure(draft: Draft, run: Run, checks: Sequence[Named]) -> None:
    """Record that a run failed by these checks."""
    names = tuple(check.name for check in checks)
    known = run.evidence or NOTHING_KNOWN
    standings = verdict.standings_of(run)
    tests = {
        one.required.name: found
        for one in standings
        if (found := _failed_in(one, known)) is not None
    }
    unexplained = [
        FailedTest(name, test)
        for name, found in tests.items()
        for test in found
        if not test or test in known.unexplained_tests
    ]
    record = Record(
        run=run.id,
        suspects=ledger.suspects_of(draft, run, set(names)),
        checks=names,
        tests=tests,
        unexplained=tuple(unexplained),
        is_whole=draft.queue.config.full_suite,
    )
    ledger.note_failure(draft, record)


def _failed_in(one: Standing, known: Evidence) -> tuple[str, ...] | None:
    """The tests that failed in a check; none if it passed, and None if they are not known."""
    if one.outcome is CheckOutcome.PASSED:
        return ()
    if one.outcome is not CheckOutcome.FAILED or one.is_revoked:
        return None
    name = one.required.name
    why = known.explanations.get(name, Explanation.UNEXPLAINED)
    unknown = ("",) if why is Explanation.UNEXPLAINED else None
    return known.failed_tests.get(name, unknown)
