"""The time that pull requests in a queue waited for failures that turned out flaky, by test."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import Connection, delete, exists, insert, select

from service.testhealth.reports.results import Outcome
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store import days
from service.testhealth.store.attempts import attempts
from service.testhealth.store.cases import keys_of
from service.testhealth.store.days import OpenDay
from service.testhealth.store.tables_costs import QueueWaitRow
from service.testhealth.store.uploads import uploads
from service.vocabulary import Sha

NO_TEST = 0
"""The number for failures of which no report names a test; the first test has number 1."""

waits = QueueWaitRow.__table__
_later = attempts.alias()


class Wait(NamedTuple):
    """Failures of a commit that turned out flaky, and how long all pull requests waited in sum."""

    sha: Sha
    waited: timedelta


def failed_tests(
    session: Connection, repository_id: int, shas: Iterable[Sha]
) -> Mapping[str, set[int]]:
    """Return the tests that failed on each commit of a queue, and were not excused."""
    statement = (
        select(uploads.c.sha, attempts.c.no)
        .select_from(uploads)
        .join(attempts, attempts.c.upload == uploads.c.id)
        .where(
            uploads.c.repository_id == repository_id,
            uploads.c.sha.in_(sorted(set(shas))),
            uploads.c.kind == UploadClass.QUEUE.value,
            uploads.c.is_eligible.is_(True),
            attempts.c.outcome == Outcome.FAILED.value,
            attempts.c.is_quarantined.is_(False),
            # A test that passed on a retry in the same job has failed nothing.
            ~exists().where(
                _later.c.upload == attempts.c.upload,
                _later.c.no == attempts.c.no,
                _later.c.n > attempts.c.n,
            ),
        )
        .distinct()
    )
    found: defaultdict[str, set[int]] = defaultdict(set)
    for sha, no in session.execute(statement):
        found[sha].add(no)
    return found


def shared(
    given: Sequence[Wait], tests: Mapping[str, set[int]]
) -> dict[int, tuple[float, timedelta]]:
    """Return what each test has of the failures and of the time; tests of a commit share equally.

    The sum is that of all waits. Pure.
    """
    sums: defaultdict[int, tuple[float, timedelta]] = defaultdict(lambda: (0.0, timedelta()))
    for wait in given:
        failed = sorted(tests.get(wait.sha, ())) or [NO_TEST]
        for no in failed:
            failures, waited = sums[no]
            sums[no] = (failures + 1 / len(failed), waited + wait.waited / len(failed))
    return dict(sums)


def write(session: Connection, day: OpenDay, given: Sequence[Wait]) -> bool:
    """Write the waits of a day instead of what was there; False: the day has changed."""
    if not days.lock(session, day):
        return False
    here = day.place.repository_id
    session.execute(delete(waits).where(waits.c.repository_id == here, waits.c.day == day.day))
    tests = failed_tests(session, here, [each.sha for each in given]) if given else {}
    rows = [
        {
            "no": no,
            "day": day.day,
            "failures": failures,
            "wait_ms": round(waited.total_seconds() * 1000),
            **keys_of(day.place),
        }
        for no, (failures, waited) in sorted(shared(given, tests).items())
    ]
    if rows:
        session.execute(insert(waits), rows)
    return True
