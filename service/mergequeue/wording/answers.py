"""An answer to a command: a reaction on the comment, and a new comment where one is needed."""

from dataclasses import dataclass

from service.provider.values import (
    Emoji,
)
from service.text import markdown
from service.text.markdown import Links
from service.text.phrases import Phrase

NOTHING_CHANGED = " Nothing was changed."

# A reply of one sentence names no page, so no address has to be allowed.
_NO_LINKS = Links(web_url="")


@dataclass(frozen=True, slots=True)
class Answer:
    """The reaction on the comment that asked, and the reply, if there is one."""

    emoji: Emoji
    text: str | None = None


def accepted(text: Phrase) -> Answer:
    """It was done, or is told."""
    return Answer(Emoji.ACCEPTED, written(text))


def unclear(text: Phrase) -> Answer:
    """It was not understood, or there was nothing to do."""
    return Answer(Emoji.UNCLEAR, written(text))


def refused(text: Phrase) -> Answer:
    """It was not done."""
    return Answer(Emoji.REFUSED, written(text))


def written(text: Phrase) -> str:
    """The text of a reply as Markdown; pages are named without a link."""
    return markdown.markdown(text, _NO_LINKS)
