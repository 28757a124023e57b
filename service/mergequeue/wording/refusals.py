"""Why a command was refused, and what to do."""

from collections.abc import Callable

from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.wording.names import MERGE
from service.text import markdown, phrases
from service.text.phrases import Argument, Code, Phrase, Pull


def message(refused: Refused, target: str) -> str:
    """Return what was refused and what to do, as the plain `detail` of an API error."""
    return markdown.plain(text(refused, target))


def text(refused: Refused, target: str) -> Phrase:
    """Return what was refused and what to do, in whole sentences."""
    refusal = refused.reason.record.refused
    if refusal is None:
        return Phrase()
    return phrases.filled(refusal.text, lambda name: _PLACES[name](refused, target))


def no_required_checks(target: str) -> Phrase:
    """Without a required check there is nothing to test, and untested code does not land."""
    return text(Refused(Reason.NO_REQUIRED_STATUSES, ""), target)


def _count(refused: Refused, _: str) -> Phrase:
    count = len(refused.prs)
    return phrases.counted(count, "PR is", "PRs are") if count else Phrase()


_PLACES: dict[str, Callable[[Refused, str], Argument | None]] = {
    "target": lambda _, target: target,
    "merge": lambda _, __: MERGE,
    "field": lambda refused, _: refused.field or None,
    "text": lambda refused, _: phrases.quoted(refused.text) if refused.text else None,
    "count": _count,
    "prs": lambda refused, _: phrases.pulls(refused.prs),
    "paths": lambda refused, _: phrases.names(refused.paths),
    "upper": lambda refused, _: Pull(refused.prs[0]),
    "lower": lambda refused, _: Pull(refused.prs[-1]),
    "rebase": lambda refused, target: Code(f"git rebase --onto origin/{target} {refused.head}"),
}
"""The names that a template of a refusal may use."""
