"""Notices to the maintainers of a repository's tests (docs/design/quarantine.md 5).

A notice changes nothing and is not stored: it is shown while its numbers are too high.
"""

from datetime import timedelta
from typing import NamedTuple

from service.database.database import Tx
from service.testhealth.operations import lists
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.store import cases
from service.testhealth.store.listings import ListedCase

LARGE_FROM, LARGE_SHARE = 20, 0.02
"""More quarantined tests than both, this number and this share of all, are a large quarantine."""

EXPIRES_SOON = timedelta(days=3)


class QuarantineLarge(NamedTuple):
    """So many tests are quarantined, of so many that are known."""

    quarantined: int
    tests: int


def quarantine_large(session: Tx, context: RepositoryContext) -> QuarantineLarge | None:
    """The notice `quarantine_large`: tests are quarantined by themselves, and too many of them."""
    settings = context.settings
    if not (settings.quarantine_enabled and settings.auto_quarantine_enabled):
        return None
    quarantined = lists.quarantined_tests(context).count(session)
    if quarantined <= LARGE_FROM:
        return None
    tests = cases.count(session, context.repository.id)
    return QuarantineLarge(quarantined, tests) if quarantined > LARGE_SHARE * tests else None


def expires_soon(context: RepositoryContext, test: ListedCase) -> bool:
    """Return whether what people said of its quarantine ends within three days."""
    until = test.expires_at
    return until is not None and context.now < until <= context.now + EXPIRES_SOON
