"""Why a command line cannot be run: one text per code, with what was probably meant."""

from service.provider.signals import AskUnclear, Unclear
from service.text import phrases
from service.text.phrases import Code, Phrase, phrase

MAY_FOLLOW = (
    *("cancel", "retry", "status", "pause", "resume", "drain", "help"),
    *("--priority", "--no-batch", "--batch", "--sha"),
)


def text(ask: AskUnclear) -> Phrase:
    """Return what is wrong with the command line and what to write instead."""
    return UNCLEAR[ask.why](ask)


def _unknown_word(ask: AskUnclear) -> Phrase:
    text = phrase("I do not know {}.", f"/merge {ask.given}")
    if ask.suggestion:
        meant = f"/merge {ask.suggestion}"
        return text + phrase(" Did you mean {}? ({} lists the commands.)", meant, "/merge help")
    known = phrases.listed([Phrase((Code(word),)) for word in MAY_FOLLOW], len(MAY_FOLLOW), "or")
    alone = phrase(" {} alone queues this PR; it takes {}.", "/merge", known)
    return text + alone + phrase(" ({} says what each does.)", "/merge help")


def _unknown_option(ask: AskUnclear) -> Phrase:
    text = phrase("{} is not an option", ask.given)
    if ask.suggestion:
        return text + phrase("; use {}.", ask.suggestion)
    return text + phrase(". ({} lists the options.)", "/merge help")


def _bad_priority(ask: AskUnclear) -> Phrase:
    values = "urgent, high, medium, low, lowest or 0 to 255 (lower goes first)."
    if not ask.given:
        return phrase("{} needs a value: " + values, "--priority")
    return phrase("Priority {} is not one of " + values, ask.given)


def _bad_sha(ask: AskUnclear) -> Phrase:
    if not ask.given:
        return phrase("{} needs a value: give 7 to 40 hex digits of the head.", "--sha")
    return phrase("{} is not the beginning of a commit: give 7 to 40 hex digits.", ask.given)


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
    Unclear.NO_REASON: _reason_missing,
    Unclear.TOO_LONG: _too_long,
    Unclear.SEVERAL: _several,
}
