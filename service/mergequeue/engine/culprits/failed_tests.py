"""Record a failed run: who can have caused it, and which tests failed in it.

`engine/blame.py` says what follows from the tests.
"""

from collections.abc import Sequence, Set

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.culprits.verdict import Standing
from service.mergequeue.engine.model import Entry, Named, Run
from service.mergequeue.engine.policy import constants, policies
from service.mergequeue.engine.records import UNKNOWN, FailedTest, Record, Suspect
from service.mergequeue.engine.reported import Evidence
from service.mergequeue.engine.state import bases, ledger
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState
from service.vocabulary import CheckOutcome, Explanation

NO_EVIDENCE = Evidence(attempt=0, explanations={})


def note_failure(draft: Draft, run: Run, checks: Sequence[Named]) -> None:
    """Record that a run failed by these checks."""
    names = tuple(check.name for check in checks)
    evidence = run.evidence or NO_EVIDENCE
    tests = {
        one.required.name: failed
        for one in verdict.standings_of(run)
        if (failed := _failed_in(one, evidence)) is not None
    }
    unexplained = [
        FailedTest(name, test)
        for name, failed in tests.items()
        for test in failed
        if test == UNKNOWN or test in evidence.unexplained_tests
    ]
    record = Record(
        run=run.id,
        suspects=_suspects_of(draft, run, set(names)),
        checks=names,
        tests=tests,
        unexplained=tuple(unexplained),
        # Of a check that has not ended nobody knows which other tests pass.
        is_whole=draft.queue.config.full_suite and not any(check.doom for check in checks),
    )
    ledger.note_failure(draft, record)


def fails_alone(run: Run, entry: Entry, checks: Set[str]) -> bool:
    """Return whether the entry's own head is known to fail one of these checks or failed tests."""
    is_reported = run.evidence is not None and entry.pr in run.evidence.own_head
    return is_reported or not checks.isdisjoint(entry.facts.own_failed)


def _failed_in(one: Standing, evidence: Evidence) -> tuple[str, ...] | None:
    """The tests that failed in a check; none if it passed, and None if nothing is known of it."""
    if one.outcome is CheckOutcome.PASSED:
        return ()
    if one.outcome is not CheckOutcome.FAILED or one.is_revoked:
        return None
    name = one.required.name
    why = evidence.explanations.get(name, Explanation.UNEXPLAINED)
    without_names = (UNKNOWN,) if why is Explanation.UNEXPLAINED else None
    return evidence.failed_tests.get(name, without_names)


def _suspects_of(draft: Draft, run: Run, checks: Set[str]) -> tuple[Suspect, ...]:
    """The entries that the run tests, and those of its base that have no proof yet.

    What a witness tests is tested anew by another run, so it counts as a part of the base.
    """
    own = draft.own(run)
    made = bases.progress(draft, run)
    landed = made.landed if made is not None else frozenset()
    beneath = [
        entry
        for member in (run.base if own else run.members)
        if (entry := draft.entry_of(member)) is not None
        and member.pr not in landed
        and entry.state is not EntryState.TESTS_PASSED
    ]
    suspects = policies.policy_of(draft.queue.config).suspects(draft)
    weights = run.evidence.weights if run.evidence is not None else {}
    return tuple(
        Suspect(
            entry.id,
            entry.pr,
            chance=min(constants.CHANCE_MAX, suspects.failing(entry)),
            is_tested=entry in own,
            weight=max(1.0, weights.get(entry.pr, 1.0)),
            fails_alone=fails_alone(run, entry, checks),
        )
        for entry in (*beneath, *own)
    )
