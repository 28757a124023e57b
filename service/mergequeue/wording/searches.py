"""The search for the culprit of a failed batch in words: steps of it, and how it stands.

Nobody is blamed on the way: who is not proven is only not proven yet (ENGINE.md 10).
"""

from collections.abc import Sequence
from typing import assert_never

from service.mergequeue.engine.model import Bisection
from service.mergequeue.engine.outputs import (
    BisectionClosed,
    BisectionNarrowed,
    BisectionOpened,
    Recorded,
)
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import reasons
from service.mergequeue.wording.situation import Situation
from service.text import phrases
from service.text.phrases import Phrase, phrase

SearchEvent = BisectionOpened | BisectionNarrowed | BisectionClosed


def clause(event: SearchEvent, history: Sequence[Recorded] = ()) -> Phrase:
    """One step; pull requests are named if `history` tells how the search began."""
    match event:
        case BisectionOpened():
            if len(event.prs) == 1:
                return phrase("the failure of {} is examined", phrases.pulls(event.prs))
            return phrase("the search for the cause began among {}", phrases.pulls(event.prs))
        case BisectionNarrowed():
            return _narrowed(event, _searched(event, history))
        case BisectionClosed():
            return _closed(event)
        case _:
            assert_never(event)


def is_shown(event: SearchEvent, history: Sequence[Recorded]) -> bool:
    """Whether a comment shows it: the failure of one by itself is told by its test runs."""
    prs = event.prs if isinstance(event, BisectionOpened) else _searched(event, history)
    return len(prs) > 1


def standing(search: Bisection, pr: int) -> Phrase:
    """How far a search among several has come, in sentences, as the pull request reads it."""
    prs = tuple(member.pr for member in search.entries)
    proven, suspects = prs[: search.lo], prs[search.lo : search.hi]
    pieces = []
    if proven:
        are = "is" if len(proven) == 1 else "are"
        pieces.append(phrase("{} " + are + " proven.", phrases.pulls(proven)))
    if suspects == (pr,):
        pieces.append(phrase("The search has come down to this PR; its tests run once more."))
    elif len(suspects) == 1:
        words = "The search has come down to {}, whose tests run once more."
        pieces.append(phrase(words, phrases.pulls(suspects)))
    elif len(suspects) < len(prs):
        pieces.append(phrase("The cause is among {}.", phrases.pulls(suspects)))
    else:
        pieces.append(phrase("Headgate is searching for the cause."))
    cuts = [phrases.pulls(prs[:cut]) for cut in sorted(search.probes) if cut != search.hi]
    if cuts and len(suspects) > 1:
        pieces.append(phrase("Under test when this was written: {}.", phrases.joined(cuts, "; ")))
    if pr in prs[search.hi :]:
        pieces.append(phrase("This PR is tested again after that."))
    return phrases.joined(pieces)


def _searched(
    event: BisectionNarrowed | BisectionClosed, history: Sequence[Recorded]
) -> tuple[int, ...]:
    """Whom the search is about, in order; empty when its beginning is not told."""
    for recorded in history:
        begun = recorded.event
        if isinstance(begun, BisectionOpened) and begun.bisection == event.bisection:
            return begun.prs
    return ()


def _narrowed(event: BisectionNarrowed, prs: tuple[int, ...]) -> Phrase:
    if event.lo >= event.hi:
        return phrase("all of the batch are proven")
    if not prs and event.hi == event.lo + 1:
        return phrase("the search has come down to number {} of the batch", event.hi)
    if not prs and not event.lo:
        return phrase("the cause is among the first {} of the batch", event.hi)
    if not prs:
        are = "is" if event.lo == 1 else "are"
        words = f"the first {{}} of the batch {are} proven, and the cause is among the next {{}}"
        return phrase(words, event.lo, event.hi - event.lo)
    proven, suspects = prs[: event.lo], prs[event.lo : event.hi]
    words = "the search has come down to {}" if len(suspects) == 1 else "the cause is among {}"
    where = phrase(words, phrases.pulls(suspects))
    if not proven:
        return where
    are = "is" if len(proven) == 1 else "are"
    return phrase("{} " + are + " proven, and ", phrases.pulls(proven)) + where


def _closed(event: BisectionClosed) -> Phrase:
    if event.culprit is not None:
        return phrase("the cause is found: {}", phrases.pulls((event.culprit,)))
    if event.why is Reason.BISECTION_PASSED:
        return phrase("the search ended without a cause: what had failed passes now")
    if event.why not in reasons.PENDING:
        return phrase("the search was given up because a PR that it needs left the queue")
    why = reasons.because(Situation("", EntryState.PENDING, event.why))
    return phrase("the search was given up because {}", why)
