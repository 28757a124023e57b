"""When tests first ran and last failed, corrected after an upload of them was removed.

Most of its tests ran before it, too. For the others the remaining uploads are searched, oldest or
newest first, until the answer is found for all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from service.testhealth.operations.judging import Bench
from service.testhealth.reports.results import Outcome
from service.testhealth.store import removal, uploads
from service.testhealth.store.removal import Attempted, Corrections, Doubtful
from service.testhealth.store.uploads import Contents
from service.testhealth.store.uploads_rows import Upload


def correct(bench: Bench, gone: Upload, nos: Iterable[int]) -> None:
    """Note anew of tests what the upload that is gone had told of them."""
    here, since, at = bench.place.repository_id, bench.horizon, gone.ran_at
    # What was noted before `since` stays: uploads of that time are forgotten.
    doubtful = removal.doubtful(bench.session, here, nos, (at, since))
    ids = uploads.eligible(bench.session, here, since)
    left = sorted(uploads.contents(bench.session, sorted(ids)), key=lambda each: each.ran_at)
    attempted = removal.attempted(bench.session, here, doubtful.nos, since)
    found = _corrections(_Left(bench, left, tuple(attempted)), doubtful, at)
    removal.correct(bench.session, here, found)


@dataclass(frozen=True, slots=True)
class _Left:
    """Uploads that are left, oldest first, and the stored attempts of the tests in question."""

    bench: Bench
    uploads: list[Contents]
    attempted: tuple[Attempted, ...]

    def first(self, nos: set[int], at: datetime) -> dict[int, datetime]:
        """When tests ran first none of which ran before an instant; who never did is left out."""
        later = (each for each in self.uploads if each.ran_at >= at)
        found = self._holding(later, nos)
        for each in self.attempted:
            if each.no in nos:
                found[each.no] = min(each.first, found.get(each.no, each.first))
        return found

    def failed(self) -> dict[int, datetime]:
        """When tests failed last."""
        return {each.no: each.last for each in self.attempted if each.outcome is Outcome.FAILED}

    def passed(self, nos: set[int]) -> set[int]:
        """Those of the tests that passed."""
        won = {each.no for each in self.attempted if each.outcome is Outcome.PASSED}
        green = (each._replace(skipped=None) for each in reversed(self.uploads))
        return won | self._holding(green, nos - won).keys()

    def _holding(self, some: Iterable[Contents], nos: set[int]) -> dict[int, datetime]:
        """Number → when the first of these uploads ran that has the test in a set."""
        found: dict[int, datetime] = {}
        asked: set[str] = set()
        missing = set(nos)
        for each in some:
            for key in filter(None, (each.passed, each.skipped)):
                if not missing:
                    return found
                if key not in asked:
                    asked.add(key)
                    members = self.bench.sets.members([key], sorted(missing)).get(key, ())
                    found.update(dict.fromkeys(members, each.ran_at))
                    missing.difference_update(members)
        return found


def _corrections(left: _Left, doubtful: Doubtful, at: datetime) -> Corrections:
    """What is noted of tests and does not hold any more."""
    first, failed = left.first(doubtful.first, at), left.failed()
    return Corrections(
        unknown=doubtful.first - first.keys(),
        first=first,
        failed={no: failed.get(no) for no in doubtful.failed},
        unpassed=doubtful.passed - left.passed(doubtful.passed),
    )
