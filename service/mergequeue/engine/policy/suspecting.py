"""Conclude what is believed of an entry, and whether it is enough to reject it.

See docs/explanation/belief.md.
"""

from collections.abc import Callable, Sequence

from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.policy import constants, foresight, outages
from service.mergequeue.engine.policy.belief import Belief, Charge, odds_of
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.records import Suspect
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import SPARE, EntryState, RunStatus
from service.mergequeue.engine.suspicion import FailedTogether, Fate, Other, Suspicion

RUNS_MAX = 3
"""Failed runs with others that are kept, the newest."""

OTHERS_MAX = 20
"""Other pull requests of one run that are kept, the first in the order of the run."""

UNDECIDED_PERCENT_MAX = 99
"""Only a verdict makes it certain."""


def belief_of(draft: Draft) -> Belief:
    """Return what the records say; kept until they change."""
    known, queue, least = draft.entries.belief, draft.queue, foresight.convicted_min(draft)
    if (
        not isinstance(known, Belief)
        or known.records is not queue.records
        or known.rates is not queue.rates
        or known.convicted_min != least
    ):
        known = draft.entries.belief = Belief(queue.records, queue.rates, least)
    return known


def failing(draft: Draft, entry: Entry) -> float:
    """The chance that the entry fails by itself, after everything seen of it."""
    return belief_of(draft).failing(entry.id, prior(draft, entry))


def prior(draft: Draft, entry: Entry) -> float:
    """The chance that the entry fails by itself, before any failure."""
    return belief_of(draft).prior(entry.p_fail, has_passed=entry.screened)


def is_convicted(draft: Draft, entry: Entry, more: int = 0) -> bool:
    """Return whether its failures alone reject the entry, after so many more of them."""
    return belief_of(draft).is_convicted(
        entry.id, 0.0 if entry.screened else entry.p_fail, has_passed=entry.screened, more=more
    )


def suspicion_of(draft: Draft, entry: Entry, *, is_convicted: bool = False) -> Suspicion | None:
    """Return what is believed of the entry, with its evidence; None if it is no suspect."""
    believed = belief_of(draft)
    if not believed.is_suspect(entry.id):
        return None
    return build_suspicion(
        believed.charges_against(entry.id),
        failing(draft, entry),
        lambda one: _fate(draft, one),
        is_convicted=is_convicted,
    )


def _fate(draft: Draft, one: Suspect) -> Fate:
    if one.has_merged:
        return Fate.MERGED
    entry = draft.entries.get(one.pr)
    is_here = entry is not None and entry.id == one.entry
    has_passed = is_here and entry is not None and entry.state is EntryState.TESTS_PASSED
    if not one.chance or has_passed:
        return Fate.PASSED
    return Fate.UNDECIDED if is_here else Fate.LEFT


def any_failing(draft: Draft, group: Sequence[Entry]) -> float:
    """The chance that one of these fails by itself."""
    passes = 1.0
    for entry in group:
        passes *= 1.0 - failing(draft, entry)
    return 1.0 - passes


def is_rejected(draft: Draft, entry: Entry, *, at_once: bool = False) -> bool:
    """Return whether its failures reject the entry; more are needed while CI may be what fails.

    One failure alone is enough without this question, unless the others came so soon after it that
    one outage can have caused them all (`at_once`).
    That is possible if nothing has passed since the first of them, and probable enough unless the
    entry itself is far more likely to fail. Then failures of runs with other pull requests do not
    count, because one outage can cause all of them, and one more failure is needed while other runs
    are under way that may pass.
    """
    if not is_convicted(draft, entry):
        return False
    alone = belief_of(draft).failures_alone(entry.id)
    if len(alone) < 2 and not at_once:
        return True
    outage = outages.odds(draft, entry, alone[0].run)
    if odds_of(prior(draft, entry)) >= odds_of(constants.CONVICTED_MIN) * outage:
        return True
    awaits = any(
        run.status is RunStatus.IN_PROGRESS
        and run.kind not in SPARE
        and entry.pr not in (*run.prs, *run.base_prs)
        for run in draft.runs.values()
    )
    too_few = sum(len(record.suspects) > 1 for record in alone) + (1 if awaits else 0)
    return is_convicted(draft, entry, more=-too_few)


def build_suspicion(
    charges: Sequence[Charge],
    chance: float,
    fate_of: Callable[[Suspect], Fate],
    *,
    is_convicted: bool,
) -> Suspicion:
    """Return what these charges say of the entry that they are against."""
    together = [charge for charge in charges if not charge.is_alone]
    percent = max(1, round(100 * chance))
    return Suspicion(
        percent=percent if is_convicted else min(percent, UNDECIDED_PERCENT_MAX),
        alone=len(charges) - len(together),
        together=len(together),
        newest_together=tuple(_others(one, fate_of) for one in together[-RUNS_MAX:]),
    )


def _others(charge: Charge, fate_of: Callable[[Suspect], Fate]) -> FailedTogether:
    shown = tuple(Other(one.pr, fate_of(one)) for one in charge.others[:OTHERS_MAX])
    return FailedTogether(charge.record.run, shown, len(charge.others) - len(shown))


def chance_of_failure(draft: Draft, run: Run) -> float:
    """Return how probable it was that the run fails because of its changes, or by a flake.

    A change that failed before is expected to fail again, which says little about the others.
    """
    members = [draft.entry_of(member) for member in (*run.base, *run.entries)]
    entries = [entry for entry in members if entry is not None]
    believed = belief_of(draft)
    if run.bisection is not None or any(
        believed.is_suspect(entry.id) or _was_taken_back(entry) for entry in entries
    ):
        return 1.0
    passes = 1.0 - believed.flake
    for entry in entries:
        if entry.state is not EntryState.TESTS_PASSED:
            p_fail = entry.p_fail or constants.UNKNOWN_P_FAIL
            passes *= 1.0 - believed.prior(p_fail, has_passed=False)
    return 1.0 - passes


def _was_taken_back(entry: Entry) -> bool:
    """Return whether breaker holds took back `TAKEN_BACK_MAX` failures of an entry or more."""
    codes = (Reason.BASE_RED, Reason.REPEATED_FAILURE)
    taken_back = sum(entry.restarts.get(code.value, 0) for code in codes)
    return taken_back >= constants.TAKEN_BACK_MAX
