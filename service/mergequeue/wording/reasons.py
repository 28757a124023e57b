"""Why an entry is in its state: one sentence per reason and state.

The sentences are in the records (`service/mergequeue/reasons`).
"""

from typing import assert_never

from service.mergequeue.engine.culprits.failing import Failing
from service.mergequeue.engine.model import Entry, MergeQueue
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import endings, foreseen, places, readiness
from service.mergequeue.wording.situation import Situation, UnmetCondition, situation_of
from service.text import markdown, phrases
from service.text.phrases import Phrase, phrase


def message(entry: Entry, queue: MergeQueue) -> str:
    """The sentence of the entry's present state and reason."""
    return sentence(situation_of(entry, queue))


def sentence(situation: Situation) -> str:
    """State and reason in one plain sentence."""
    return markdown.plain(phrases.sentence(explanation(situation)))


def explanation(situation: Situation) -> Phrase:
    """State and reason in one clause, as a phrase."""
    record = situation.reason.record
    match situation.state:
        case EntryState.NOT_READY:
            return _not_ready(situation)
        case EntryState.PENDING:
            return phrase(record.pending_lead) + _clause(situation, record.pending)
        case EntryState.TESTING:
            found = situation.failing
            return _clause(situation, record.testing) if found is None else failing(found)
        case EntryState.TESTS_PASSED:
            return _clause(situation, record.passed)
        case EntryState.PENDING_FAILURE:
            return _undecided(situation) if record.undecided else _clause(situation)
        case EntryState.FAILED | EntryState.MERGED:
            return endings.why(situation)
        case EntryState.CANCELLED:
            return endings.removed(situation)
        case _:
            assert_never(situation.state)


def because(situation: Situation) -> Phrase:
    """Return why its tests restart, as the clause after "because"; empty at the first start."""
    if not situation.reason.record.pending_lead:
        return Phrase()
    return _clause(situation, situation.reason.record.pending)


def restart(situation: Situation) -> Phrase:
    """Return why a pull request waits to be tested again, as a sentence."""
    clause = _clause(situation, situation.reason.record.pending)
    if not situation.reason.record.pending_lead:
        return phrases.sentence(clause)
    return phrase("It is tested again because {}.", clause)


def failing(found: Failing) -> Phrase:
    """Return what failed in a run that is not decided yet, and what is awaited."""
    failed = phrases.joined(foreseen.failures(found.checks), "; ")
    return phrase("{}; {}", failed, awaited(found))


def failing_checks(found: Failing) -> Phrase:
    """Return in few words that checks of a run failed or will, before it is decided."""
    checks = phrases.pages([(each.name, each.url) for each in found.checks])
    is_foreseen = all(each.doom is not None for each in found.checks)
    return phrase(f"{{}} {foreseen.CANNOT_PASS if is_foreseen else 'failed'}", checks)


def awaited(found: Failing) -> Phrase:
    """Return what a run with a failed check waits for, and how long at most."""
    what = "test results" if found.for_results else "a newer attempt"
    return phrase(f"waiting up to {found.wait.total_seconds():.0f} s for {what}")


def failure(situation: Situation) -> Phrase:
    """Return what failed in the test run, before the culprit is known."""
    undecided = situation.reason.record.undecided or Reason.CHECK_FAILED.record.undecided
    return places.filled(undecided, situation)


def aside_clause(situation: Situation) -> Phrase:
    """Return why the entry was set aside after its tests; empty for other reasons."""
    aside = situation.reason.record.aside
    return Phrase() if aside is None else places.filled(aside.clause, situation)


def aside_step(situation: Situation) -> Phrase:
    """Return what somebody can do about an entry set aside, in whole sentences."""
    aside = situation.reason.record.aside
    return Phrase() if aside is None else places.filled(aside.step, situation)


def _not_ready(situation: Situation) -> Phrase:
    record, unmet = situation.reason.record, situation.unmet
    if record.need is not None:
        unmet = unmet or (UnmetCondition(situation.reason, situation.target),)
        why = aside_clause(situation)
    else:
        why = _clause(situation, record.submitted)
    waits = phrase("waits until {}", readiness.goals(unmet)) if unmet else Phrase()
    return phrases.joined([why, waits], "; ")


def _undecided(situation: Situation) -> Phrase:
    search = "[waiting for {prs}, which {are} ahead|Headgate is searching for the cause]"
    return phrase("{}; {}", failure(situation), places.filled(search, situation))


def _clause(situation: Situation, words: str = "") -> Phrase:
    """Return the words; of a reason in another state than usual the words of its usual one."""
    record = situation.reason.record
    words = words or record.pending or record.testing or record.passed
    if words:
        return places.filled(words, situation)
    if record.undecided:
        return _undecided(situation)
    ending = record.merged or record.failed or record.cancelled
    return Phrase() if ending is None else places.filled(ending.clause, situation)
