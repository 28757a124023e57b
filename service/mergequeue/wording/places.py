"""The places of the templates about an entry: what each name stands for in a situation.

A place without a value is None; then its template has other words or a shorter sentence.
"""

import re
from collections.abc import Callable

from service.mergequeue.engine.model import Named
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import checked_names, foreseen, readiness, reporters
from service.mergequeue.wording.names import MERGE, TEST_BRANCHES
from service.mergequeue.wording.situation import Situation
from service.text import phrases, times
from service.text.phrases import Argument, Code, Page, Phrase, phrase
from service.vocabulary import Actor

NO_REASON_GIVEN = "taken out by "
"""The queue's own text for a removal without a reason."""

CLAUSES_SHOWN_MAX = 3

_CODE = re.compile(r"[a-z_]*")

# Words of GitHub's refusal and what usually stands behind them; the first that fits is shown.
_USUAL_CAUSES = (
    ("locked", "the conversation of the PR is locked"),
    ("approving review", "a required review was withdrawn"),
    ("conversation", "a conversation is not resolved"),
    ("status check", "a required check ran on the PR alone, not on its test branch"),
)


def filled(template: str, situation: Situation) -> Phrase:
    """Return a template of a record for this situation."""
    return phrases.filled(template, lambda name: PLACES[name](situation))


def is_code(text: str) -> bool:
    """Return whether the text is no words, but a code of ours that stands in for silence."""
    return _CODE.fullmatch(text) is not None


def _checks(situation: Situation) -> Phrase:
    """Return the checks in the evidence with their pages."""
    return phrases.pages([(each.name, each.url) for each in situation.detail.checks])


def _failed_checks(situation: Situation) -> Phrase:
    named = situation.detail.checks
    clauses = foreseen.failures([each for each in named if each.because is None])
    not_run = [each for each in named if each.because is not None]
    clauses += [phrase("{} {}", Code(each.name), _skipped_because(each)) for each in not_run]
    return phrases.joined(clauses[:CLAUSES_SHOWN_MAX], "; ")


def _skipped_because(check: Named) -> Phrase:
    """Return what CI did with a check that was skipped and does not pass."""
    if not check.because:
        return phrase("was skipped or neutral, which counts as failed")
    job = Code(check.because)
    return phrase("was skipped because {} failed", Page(job, check.url) if check.url else job)


def _named(who: Actor) -> Phrase:
    return phrases.actor(who) if who.login else Phrase()


def _requester(situation: Situation) -> Phrase:
    return _named(situation.submitted_by if situation.submitted_by.login else situation.by)


def _words(situation: Situation) -> Code | None:
    """Return the reason that a person gave for a removal."""
    text = situation.detail.text
    return None if not text or text.startswith(NO_REASON_GIVEN) else phrases.quoted(text)


def _said(situation: Situation) -> Code | None:
    """Return the provider's words, if it was the provider."""
    text = situation.detail.text
    return None if is_code(text) else phrases.quoted(text)


def _usual_cause(situation: Situation) -> Phrase:
    words = situation.detail.text.lower()
    return phrase(next((cause for needle, cause in _USUAL_CAUSES if needle in words), ""))


def _moved(situation: Situation) -> str | None:
    """Return the target unless the detail says that a landing stopped."""
    is_stopped = situation.detail.text and not situation.detail.sha
    return None if is_stopped else situation.target


def _moved_to(situation: Situation) -> Phrase:
    sha = situation.detail.sha
    return phrase(" to {}", phrases.commit(sha)) if sha else Phrase()


def _old_head(situation: Situation) -> Code | None:
    old = situation.head
    return None if old is None or old == situation.detail.sha else phrases.commit(old)


def _sha(situation: Situation) -> Code | None:
    return phrases.commit(situation.detail.sha) if situation.detail.sha else None


def _rebase(situation: Situation) -> Code | None:
    """Return the command for one whose pull request below landed as new commits."""
    below = situation.rested_on
    return Code(f"git rebase --onto origin/{situation.target} origin/{below}") if below else None


def _hours(situation: Situation) -> Phrase:
    config = situation.config
    return Phrase() if config is None else phrase(f"{config.not_ready_timeout_hours:g} h")


def _tries(situation: Situation) -> Phrase:
    """Return how often it was tried; of one that has left because of CI, for how long."""
    config = situation.config
    if config is None:
        return phrase("again")
    if situation.state is EntryState.CANCELLED and config.not_ready_timeout_hours:
        return phrase(f"for {config.not_ready_timeout_hours:g} h")
    return phrase(times.times(config.auto_retry_limit + 1))


PLACES: dict[str, Callable[[Situation], Argument | None]] = {
    "target": lambda situation: situation.target,
    "text": lambda situation: situation.detail.text or None,
    "words": _words,
    "said": _said,
    "usual_cause": _usual_cause,
    "checks": _checks,
    "failed_checks": _failed_checks,
    "never_started": reporters.never_started_clause,
    "start_checks": reporters.start_step,
    "skipped": reporters.skip_clause,
    "run_skipped": reporters.skip_step,
    "checked": lambda situation: checked_names.summary(situation.checked),
    "specials": lambda situation: phrases.joined(checked_names.specials(situation.checked), "; "),
    "prs": lambda situation: phrases.pulls(situation.detail.prs),
    "any_pr": lambda situation: phrases.pulls(situation.detail.prs, "or"),
    "paths": lambda situation: phrases.names(situation.detail.paths),
    "sha": _sha,
    "old_head": _old_head,
    "new_head": _sha,
    "moved": _moved,
    "moved_to": _moved_to,
    "rebase": _rebase,
    "by": lambda situation: _named(situation.by),
    "requester": _requester,
    "submitter": lambda situation: phrases.actor(situation.submitted_by),
    "goals": lambda situation: readiness.goals(situation.unmet),
    "hours": _hours,
    "testing_minutes": lambda situation: (
        situation.config.testing_timeout_minutes if situation.config else None
    ),
    "tries": _tries,
    "unheld_tries": lambda situation: None if situation.detail.text else _tries(situation),
    "are": lambda situation: phrase(phrases.are(situation.detail.prs)),
    "merge": lambda _: MERGE,
    "test_branches": lambda _: TEST_BRANCHES,
}
"""The names that a template may use."""
