"""Values as text of pages. Nothing here marks a text as safe: templates escape what it gives."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, assert_never
from urllib.parse import urlsplit

from service.accounts import page_addresses
from service.dashboard import charts, marks, tabs
from service.dashboard.readers import is_loopback
from service.mergequeue.engine.states import RunKind
from service.mergequeue.wording import history
from service.text import markdown, times, traces
from service.text.phrases import Code, Commit, Moment, Page, Part, Phrase, Pull
from service.text.traces import TraceLine

TEXT_CHARACTERS_MAX = 1000
URL_CHARACTERS_MAX = 2000
LINES_MAX = 60
SHA_DIGITS = 7


def shown(text: str | None) -> str:
    """A foreign text as one line: what shows nothing or turns the reading direction is left out."""
    return markdown.cleaned(text or "", TEXT_CHARACTERS_MAX)


def trace(text: str, lines_max: int = LINES_MAX) -> list[TraceLine]:
    """A foreign text with its lines."""
    return traces.lines_of(text, lines_max)


def title(text: str) -> str:
    """The same, short enough for the title of a window."""
    return markdown.cleaned(text)


def when(at: datetime) -> str:
    """`2026-03-02 14:02 UTC`."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def instant(at: datetime) -> str:
    """The same for machines."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def clock(at: datetime, now: datetime) -> str:
    """`14:02`, with the date if that is not today's."""
    return times.clock_time(at, now).removesuffix(" UTC")


def second(at: datetime, now: datetime) -> str:
    """`14:02:11`, with the date if that is not today's."""
    return times.second_of(at, now)


def instants(sentence: Phrase) -> str:
    """A sentence with its times for machines, in braces."""
    parts = (
        f"{{{instant(part.at)}}}" if isinstance(part, Moment) else markdown.plain(Phrase((part,)))
        for part in sentence.parts
    )
    return "".join(parts)


def span(length: timedelta) -> str:
    """`1 h 10 min`."""
    return times.duration(length)


class Piece(NamedTuple):
    """A part of a sentence: `text`, `code`, `commit`, `pull` or `time`.

    `url` is the address of its page, or empty; `sha` the whole name of a commit, `at` the instant
    of a time.
    """

    kind: str
    text: str
    url: str = ""
    sha: str = ""
    at: datetime | None = None


def pieces(phrase: Phrase) -> list[Piece]:
    """A sentence in parts; a template decides how each looks."""
    return [_piece(part) for part in phrase.parts]


def _piece(part: Part) -> Piece:
    match part:
        case str():
            return Piece("text", part)
        case Commit(text, sha):
            return Piece("commit", text, sha=sha)
        case Code(text):
            return Piece("code", shown(text) or "(empty)")
        case Pull(number):
            return Piece("pull", str(number))
        case Page(text, url):
            return _piece(text)._replace(url=url)
        case Moment(at, text):
            return Piece("time", text, at=at)
        case _:
            assert_never(part)


def percent(share: float) -> str:
    """`14 %`, `0.3 %` below one percent, `0 %` for nothing at all."""
    many = share * 100
    return f"{many:.1f} %" if 0 < many < 1 else f"{many:.0f} %"


def _short(sha: str) -> str:
    """The first digits of a commit."""
    return markdown.cleaned(sha)[:SHA_DIGITS]


def _thousands(number: int) -> str:
    """`412,000`."""
    return f"{number:,}"


def outside(url: str | None) -> str | None:
    """The address as a link may have it, None where it leads nowhere in the web.

    Over https, and on this machine also without; never to a script or a file.
    """
    if not url or len(url) > URL_CHARACTERS_MAX or not (url.isascii() and url.isprintable()):
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if not host or parts.username is not None:
        return None
    is_web = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    return url if is_web else None


def _purpose(kind: RunKind) -> str:
    """Return why such a run began, as a line of its own; empty for a usual one."""
    return history.purpose(kind).lstrip(" ,")


FILTERS: Mapping[str, Callable[..., object]] = {
    "clock": clock,
    "day": charts.day_label,
    "duration": charts.duration,
    "instant": instant,
    "instants": instants,
    "number": charts.plain,
    "outside": outside,
    "percent": percent,
    "plain": markdown.plain,
    "pieces": pieces,
    "priority": history.priority_name,
    "purpose": _purpose,
    "queue_path": page_addresses.queue,
    "short": _short,
    "second": second,
    "run_mark": marks.of_status,
    "shown": shown,
    "span": span,
    "spark": charts.spark,
    "strip": charts.strip,
    "tab_icon": tabs.icon,
    "tab_words": tabs.words,
    "took": charts.took,
    "trace": trace,
    "trend": charts.trend,
    "thousands": _thousands,
    "title": title,
    "when": when,
}
"""Filters of templates by name."""
