"""Sentences about reports that do not count, because another App or account makes the check."""

from collections.abc import Iterable

from service.mergequeue.engine.model import Named
from service.text import phrases
from service.text.phrases import Code, Phrase, phrase
from service.vocabulary import CheckKind, Foreign, RequiredName

SETTING = Code("statusReporters")


def sentences(checks: Iterable[Named]) -> list[Phrase]:
    """Return which checks others have reported, and what makes them count, a sentence each."""
    return [
        clause(each) + phrase(". {}", _remedy(each.foreign))
        for each in checks
        if each.foreign is not None
    ]


def clause(check: Named) -> Phrase:
    """Return "`unit` was reported by a commit status of bob; it comes from ..."."""
    foreign = check.foreign
    if foreign is None:
        return Phrase()
    return phrase("{} {}", Code(check.name), reported(foreign))


def reported(foreign: Foreign) -> Phrase:
    """Return the same without the name of the check."""
    by = _report(foreign.kind, foreign.app_id, foreign.author)
    binding = foreign.wanted.binding
    if binding is not None and not binding.on:
        words = "was reported by {}; no check run of an App has reported it, here or anywhere else"
        return phrase(words, by)
    return phrase("was reported by {}; it comes from {}", by, _reporter_of(foreign.wanted))


def _reporter_of(required: RequiredName) -> Phrase:
    """Return whose reports count for a required name."""
    by = "" if required.binding is None else required.binding.by
    if required.kind is None and required.source_id is not None:
        return phrase("App " + required.source_id)
    if required.kind is None:
        return phrase("any reporter")
    return _report(required.kind, required.source_id, by)


def _report(kind: CheckKind, app_id: str | None, by: str) -> Phrase:
    if kind is CheckKind.STATUS:
        return phrase("a commit status of {}", phrases.login(by) if by else "an unknown account")
    if app_id is None:
        return phrase("a check run of an App")
    if not by:
        return phrase("the check run of App " + app_id)
    return phrase("the check run of {} (App " + app_id + ")", by)


def _remedy(foreign: Foreign | None) -> Phrase:
    if foreign is not None and foreign.kind is CheckKind.STATUS:
        return phrase(
            "If that status is meant, an admin sets {}; {} shows both.",
            SETTING,
            Code("headgate doctor"),
        )
    return phrase(
        "If the check has moved, an admin chooses its App in the branch's rules or sets {}.",
        SETTING,
    )
