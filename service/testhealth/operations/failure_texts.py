"""Tell new failures of a test from those that it had before (docs/design/evidence.md 4)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from service.database.database import Tx
from service.testhealth.reports import failures
from service.testhealth.reports.failures import Phase
from service.testhealth.reports.results import Outcome
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.days import Span

KEYS_KNOWN = timedelta(days=30)
"""A failure that was seen within this time is not new."""

Keys = Mapping[int, frozenset[str]]
"""Number of each test → keys of failures."""

Failed = Mapping[int, list[StoredAttempt]]
"""Number of each test that failed in the end → its failed attempts."""


def known_keys(
    session: Tx, repository_id: int, nos: Iterable[int], at: datetime, prs: Collection[int]
) -> Keys:
    """Return the failures of each test by then, except those of these pull requests alone."""
    span = Span(at - KEYS_KNOWN, at)
    own = frozenset(prs)
    keys_of_tests = test_attempts.failure_keys(session, repository_id, nos, span)
    return {
        no: frozenset(key for key, seen in keys.items() if any(own.isdisjoint(of) for of in seen))
        for no, keys in keys_of_tests.items()
    }


def failed(attempts: Iterable[StoredAttempt]) -> Failed:
    """Return the failed attempts of each test that failed in the end, of one upload."""
    by_test: defaultdict[int, list[StoredAttempt]] = defaultdict(list)
    for each in attempts:
        if each.outcome is not Outcome.SKIPPED:
            by_test[each.no].append(each)
    return {
        no: [each for each in tried if each.outcome is Outcome.FAILED]
        for no, tried in by_test.items()
        if tried[-1].outcome is Outcome.FAILED
    }


def is_of_fixture(attempts: Iterable[StoredAttempt], known_keys: Collection[str]) -> bool:
    """Return whether a fixture failed that other tests may share, and not the test itself.

    A tear-down is reported at whatever test ran last. A set-up that the test has failed in before
    is its own: one that others share would fail them too.
    """
    for each in attempts:
        phase = failures.phase_of(each.headline or "")
        if phase is Phase.TEARDOWN or (phase is Phase.SETUP and each.failure not in known_keys):
            return True
    return False


def is_new(attempts: Iterable[StoredAttempt], known_keys: Collection[str]) -> bool:
    """Return whether one of a test's failures is new."""
    return any(each.failure is not None and each.failure not in known_keys for each in attempts)
