"""Say that a required check cannot pass any more (docs/design/early-failures.md 2)."""

import re
from collections.abc import Sequence

from service.mergequeue.engine.model import Named
from service.mergequeue.engine.reported import Doomed, FailedBefore
from service.text import markdown, phrases
from service.text.phrases import Code, Page, Phrase, phrase

CANNOT_PASS = "cannot pass any more"

_OUR_WORDS = re.compile(r"[A-Za-z0-9 ,.;:'()/-]*")


def clause(doom: Doomed) -> Phrase:
    """Return the same as a clause, with what failed: it follows the name of the check."""
    return phrase(f"{CANNOT_PASS}: {{}}", said(doom.part))


def failures(checks: Sequence[Named]) -> list[Phrase]:
    """Return clauses about failed checks: one of those that failed first, one of each other."""
    plain = [(one.name, one.url) for one in checks if one.doom is None and one.after is None]
    clauses = [phrase("{} failed", phrases.pages(plain))] if plain else []
    for each in checks:
        name = Page(Code(each.name), each.url) if each.url else Code(each.name)
        if each.doom is not None:
            clauses.append(phrase("{} {}", name, clause(each.doom)))
        elif each.after is not None:
            clauses.append(phrase("{} failed after {} had failed", name, jobs(each.after)))
    return clauses


def jobs(found: FailedBefore) -> Phrase:
    """Return the jobs that had failed before a check began, with their pages, at most five."""
    pages = [Phrase((Page(Code(name), url),)) for name, url in found.jobs]
    return phrases.listed([*pages, *[Phrase()] * found.more], phrases.NAMES_SHOWN_MAX)


def told(check: Named) -> str | None:
    """Return what failed of a check that cannot pass any more, as plain text; else None."""
    return markdown.cleaned(markdown.plain(said(check.doom.part))) if check.doom else None


def said(because: str) -> Phrase:
    """Return a reason as a phrase: names stand between backticks, and are texts of others."""
    pieces = [
        piece if nth % 2 == 0 and _OUR_WORDS.fullmatch(piece) else Code(piece)
        for nth, piece in enumerate(because.split("`"))
    ]
    return Phrase(tuple(piece for piece in pieces if piece not in ("", Code(""))))
