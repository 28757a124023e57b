"""In which ways tests had failed before: what makes a failure a new one (FLAKY.md 10)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from service.database.database import Tx
from service.testhealth.reports.results import Outcome
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.days import Span

KEYS_KNOWN = timedelta(days=30)
"""A failure that was seen so long before is no new one (FLAKY.md 10)."""

Keys = Mapping[int, frozenset[str]]
"""Number of each test → keys of failures."""

Failed = Mapping[int, list[StoredAttempt]]
"""Number of each test that failed in the end → its failed attempts."""


def known(
    session: Tx, repository_id: int, nos: Iterable[int], at: datetime, prs: Collection[int]
) -> Keys:
    """The failures that each test had by then, left out those that only these pull requests had."""
    span = Span(at - KEYS_KNOWN, at)
    own = frozenset(prs)
    found = test_attempts.failure_keys(session, repository_id, nos, span)
    return {
        no: frozenset(key for key, seen in keys.items() if any(own.isdisjoint(of) for of in seen))
        for no, keys in found.items()
    }


def failed(attempts: Iterable[StoredAttempt]) -> Failed:
    """The failed attempts of each test that failed in the end; attempts are of one upload."""
    by_test: defaultdict[int, list[StoredAttempt]] = defaultdict(list)
    for each in attempts:
        if each.outcome is not Outcome.SKIPPED:
            by_test[each.no].append(each)
    return {
        no: [each for each in tried if each.outcome is Outcome.FAILED]
        for no, tried in by_test.items()
        if tried[-1].outcome is Outcome.FAILED
    }


def is_new(attempts: Iterable[StoredAttempt], known_keys: Collection[str]) -> bool:
    """Whether one of a test's failures is none that it had before."""
    return any(each.failure is not None and each.failure not in known_keys for each in attempts)
