"""Why a command was refused or cannot be run, and what to do or was probably meant."""

from collections.abc import Callable

from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.wording.names import AGAIN, MERGE
from service.provider.signals import AskUnclear, Unclear
from service.text import markdown, phrases
from service.text.phrases import Argument, Code, Phrase, Pull, phrase

MAY_FOLLOW = (
    *("cancel", "retry", "status", "pause", "resume", "drain", "help"),
    *("--priority", "--no-batch", "--batch", "--sha", "--again"),
)


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


def _failed(refused: Refused, _: str) -> Phrase | None:
    blamed = refused.blamed
    return None if blamed is None else phrases.pages([(one.name, one.url) for one in blamed.checks])


def _where(refused: Refused, target: str) -> Phrase:
    if refused.over is not None and refused.over.token:
        return phrase("all queues")
    return phrase("the queue for {}", target)


def _until(refused: Refused, _: str) -> Phrase | None:
    until = None if refused.over is None else refused.over.until
    return None if until is None else phrase("{} UTC", Code(f"{until:%Y-%m-%d %H:%M}"))


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
    "run": lambda refused, _: refused.blamed.number if refused.blamed else None,
    "commit": lambda refused, _: (
        phrases.commit(refused.blamed.commit) if refused.blamed and refused.blamed.commit else None
    ),
    "failed": _failed,
    "tests": lambda refused, _: phrases.names(refused.blamed.tests) if refused.blamed else None,
    "landings": lambda refused, _: phrases.counted(
        refused.blamed.missing if refused.blamed else 1, "landing", "landings"
    ),
    "again": lambda _, __: AGAIN,
    "who": lambda refused, _: phrases.login(refused.over.submitter) if refused.over else None,
    "used": lambda refused, _: refused.over.used if refused.over else None,
    "limit": lambda refused, _: refused.over.limit if refused.over else None,
    "where": _where,
    "until": _until,
    "rebase": lambda refused, target: Code(f"git rebase --onto origin/{target} {refused.head}"),
}
"""The names that a template of a refusal may use."""


def unclear_text(ask: AskUnclear) -> Phrase:
    """Return what is wrong with the command line and what to write instead."""
    return UNCLEAR[ask.why](ask)


def _unknown_word(ask: AskUnclear) -> Phrase:
    unclear_text = phrase("I do not know {}.", f"/merge {ask.given}")
    if ask.suggestion:
        meant = f"/merge {ask.suggestion}"
        return unclear_text + phrase(
            " Did you mean {}? ({} lists the commands.)", meant, "/merge help"
        )
    known = phrases.listed([Phrase((Code(word),)) for word in MAY_FOLLOW], len(MAY_FOLLOW), "or")
    alone = phrase(" {} alone queues this PR; it takes {}.", "/merge", known)
    return unclear_text + alone + phrase(" ({} says what each does.)", "/merge help")


def _unknown_option(ask: AskUnclear) -> Phrase:
    unclear_text = phrase("{} is not an option", ask.given)
    if ask.suggestion:
        return unclear_text + phrase("; use {}.", ask.suggestion)
    return unclear_text + phrase(". ({} lists the options.)", "/merge help")


def _bad_priority(ask: AskUnclear) -> Phrase:
    values = "urgent, high, medium, low, lowest or 0 to 255 (lower goes first)."
    if not ask.given:
        return phrase("{} needs a value: " + values, "--priority")
    return phrase("Priority {} is not one of " + values, ask.given)


def _bad_sha(ask: AskUnclear) -> Phrase:
    if not ask.given:
        return phrase("{} needs a value: give 7 to 40 hex digits of the head.", "--sha")
    return phrase("{} is not the beginning of a commit: give 7 to 40 hex digits.", ask.given)


def _bad_landing(ask: AskUnclear) -> Phrase:
    what = "the number of a merged PR, or 10 to 40 hex digits of a commit."
    if not ask.given:
        return phrase("{} needs a value: " + what, "--undoes")
    return phrase("{} names nothing that landed: give " + what, ask.given)


def _reason_missing(ask: AskUnclear) -> Phrase:
    return phrase("Give a reason: {}.", f"/merge {ask.given} release freeze")


def _too_long(ask: AskUnclear) -> Phrase:
    if ask.given:
        return phrase("The reason is longer than 200 characters.")
    return phrase("The command line is longer than 300 characters.")


def _several(ask: AskUnclear) -> Phrase:
    return phrase("I run one command per comment and found {}.", ask.count)


UNCLEAR = {
    Unclear.UNKNOWN_WORD: _unknown_word,
    Unclear.UNKNOWN_OPTION: _unknown_option,
    Unclear.BAD_PRIORITY: _bad_priority,
    Unclear.BAD_SHA: _bad_sha,
    Unclear.BAD_LANDING: _bad_landing,
    Unclear.NO_REASON: _reason_missing,
    Unclear.TOO_LONG: _too_long,
    Unclear.SEVERAL: _several,
}
