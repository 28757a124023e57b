"""Answers to command lines that cannot be run: one text per way to be unclear (UX.md 2.5)."""

from service.mergequeue.wording import answers
from service.mergequeue.wording.answers import NOTHING_CHANGED, Answer
from service.provider.signals import AskUnclear, Unclear
from service.text.phrases import Phrase, phrase


def unclear(ask: AskUnclear) -> Answer:
    """A command line that cannot be run."""
    return answers.unclear(UNCLEAR[ask.why](ask) + phrase(NOTHING_CHANGED))


def _unknown_word(ask: AskUnclear) -> Phrase:
    text = phrase("I do not know {}.", f"/merge {ask.given}")
    if ask.suggestion:
        text += phrase(" Did you mean {}?", f"/merge {ask.suggestion}")
    return text + phrase(" ({} lists the commands.)", "/merge help")


def _unknown_option(ask: AskUnclear) -> Phrase:
    text = phrase("{} is not an option", ask.given)
    return text + (phrase("; use {}.", ask.suggestion) if ask.suggestion else phrase("."))


def _bad_priority(ask: AskUnclear) -> Phrase:
    return phrase(
        "Priority {} is not one of urgent, high, medium, low, lowest or 0 to 255 (lower goes "
        "first).",
        ask.given,
    )


def _bad_sha(ask: AskUnclear) -> Phrase:
    return phrase("{} is not the beginning of a commit: give 7 to 40 hex digits.", ask.given)


def _no_reason(ask: AskUnclear) -> Phrase:
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
    Unclear.NO_REASON: _no_reason,
    Unclear.TOO_LONG: _too_long,
    Unclear.SEVERAL: _several,
}
