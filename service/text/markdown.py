"""Write out phrases, and make foreign texts harmless.

See docs/design/comments.md 6.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never
from urllib.parse import SplitResult, quote, unquote, urlsplit

from service.text.phrases import Code, Moment, Page, Part, Phrase, Pull

FOREIGN_CHARACTERS_MAX = 200
URL_CHARACTERS_MAX = 1000

# Control, format (bidirectional and zero-width among them), halves of a pair, unassigned.
_INVISIBLE = {"Cc", "Cf", "Cs", "Cn", "Co"}
# Letters and marks that show nothing all the same (Unicode: Default_Ignorable_Code_Point).
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0]")
_SUPPLEMENT = re.compile("[\U000e0100-\U000e01ef]")

_LOOPBACK = re.compile(r"(.+\.)?localhost|127(\.\d{1,3}){3}|::1")
# A link to one of these leaves a line in what it points to, code span or not.
_REFERRING = {"pull", "pulls", "issues", "discussions", "commit", "commits", "compare"}


@dataclass(frozen=True, slots=True)
class Links:
    """The targets that links may have.

    `web_url` is the provider's address, `public_url` ours; nothing else is linked. `pages` is
    the address of this queue's pages, None where there are none: a pull request is then
    named without a link.
    """

    web_url: str
    public_url: str | None = None
    pages: str | None = None


def markdown(text: Phrase, links: Links) -> str:
    """The phrase as Markdown on one line; whatever others wrote in it is inert."""
    return "".join(_markdown(part, links) for part in text.parts)


def plain(text: Phrase) -> str:
    """The phrase without any markup, for the API and for titles."""
    return "".join(_plain(part) for part in text.parts)


def cleaned(text: str, characters_max: int = FOREIGN_CHARACTERS_MAX) -> str:
    """One line of visible characters, cut: white space becomes single spaces."""
    visible = "".join(
        character
        for character in " ".join(text.split())
        if unicodedata.category(character) not in _INVISIBLE
    )
    shown = " ".join(_SUPPLEMENT.sub("", _BLANK.sub("", visible)).split())
    if len(shown) <= characters_max:
        return shown
    return shown[: characters_max - 1].rstrip() + "…"


def code(text: str) -> str:
    """A code span whose fence no run of backticks in the text can close."""
    shown = cleaned(text)
    if not shown:
        return "(empty)"
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _pull_link(number: int, links: Links) -> str:
    """`#478` linked to our page of it, or in a code span: bare, it would leave a mark there."""
    if links.pages is None:
        return f"`#{number}`"
    return f"[#{number}]({links.pages}/pull/{number})"


def page(text: Code | str, url: str, links: Links) -> str:
    """The text, linked if the address is one that we link to."""
    shown = code(text.text) if isinstance(text, Code) else text
    address = linkable(url, links)
    return f"[{shown}]({address})" if address else shown


def log(url: str, links: Links) -> str:
    """` ([log](…))`; an address that we do not link to is shown instead; nothing for none."""
    if not url:
        return ""
    address = linkable(url, links)
    return f" ([log]({address}))" if address else f" (log: {code(url)})"


def linkable(url: str, links: Links) -> str | None:
    """Return the address as it may be written in a link, None if it may not be one.

    Linked are the provider's host and ours, over https; on the own machine also http.
    """
    if len(url) > URL_CHARACTERS_MAX or not (url.isascii() and url.isprintable()):
        return None
    wanted = _origin(url)
    origins = {_origin(each) for each in (links.web_url, links.public_url) if each}
    if wanted is None or wanted not in origins:
        return None
    segments = unquote(urlsplit(url).path).lower().split("/")
    if wanted == _origin(links.web_url) and _REFERRING.intersection(segments):
        return None
    return quote(url, safe=":/?#&=%+,;.~_-")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; cells are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(each) for each in line)} |" for line in lines)


def folded(summary: str, body: str) -> str:
    """A part that is shut at first."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n</details>"


def _markdown(part: Part, links: Links) -> str:
    match part:
        case str():
            return part
        case Code(text):
            return code(text)
        case Pull(number):
            return _pull_link(number, links)
        case Page(text, url):
            return page(text, url, links)
        case Moment(_, text):
            return text
        case _:
            assert_never(part)


def _plain(part: Part) -> str:
    match part:
        case str():
            return part
        case Code(text):
            return cleaned(text) or "(empty)"
        case Pull(number):
            return f"#{number}"
        case Page(text, _):
            return (cleaned(text.text) or "(empty)") if isinstance(text, Code) else text
        case Moment(_, text):
            return text
        case _:
            assert_never(part)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _origin(url: str) -> tuple[str, str, int | None] | None:
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        return None
    host = (split.hostname or "").lower()
    if split.username is not None or not host or not _is_allowed(split, host):
        return None
    return split.scheme, host, port


def _is_allowed(split: SplitResult, host: str) -> bool:
    is_loopback = _LOOPBACK.fullmatch(host) is not None
    return split.scheme == "https" or (split.scheme == "http" and is_loopback)
