"""Indexed pushes of all jobs, and the tests that failed alone in them (detector.md 4)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set

from service.testhealth.detector import pushes
from service.testhealth.detector.evidence import Event
from service.testhealth.detector.index_uploads import IndexedUpload
from service.testhealth.detector.pushes import NOBODY, JobRuns, PushKey


class IndexedPushes:
    """The runs of every job, and by test the pushes in which it failed alone."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobRuns] = {}
        self._of_test: defaultdict[int, set[tuple[str, PushKey]]] = defaultdict(set)

    def change(self, added: Iterable[IndexedUpload], removed: Iterable[IndexedUpload]) -> int:
        """Add and remove uploads; return a bit for each test whose events changed."""
        by_job: defaultdict[str, tuple[list[IndexedUpload], list[IndexedUpload]]]
        by_job = defaultdict(lambda: ([], []))
        for place, uploads in enumerate((added, removed)):
            for kept in uploads:
                if not kept.upload.is_mass:
                    by_job[kept.upload.job][place].append(kept)
        touched = 0
        sources = {kept.upload.source for each in by_job.values() for some in each for kept in some}
        for job, (coming, going) in by_job.items():
            runs = self._jobs.setdefault(job, JobRuns(job))
            for key, before in runs.change(coming, going).items():
                touched |= self._note(job, key, before.tests.keys())
        return touched | self._lone_in(sources)

    def _lone_in(self, sources: Set[str]) -> int:
        """Return a bit for each test with a lone failure in a push of these sources.

        Whether it is alone in all jobs hangs on all runs of its source.
        """
        found = 0
        for runs in self._jobs.values():
            for (source, _), alone in runs.alone.items():
                if source in sources:
                    for bit in alone.tests:
                        found |= 1 << bit
        return found

    def _note(self, job: str, key: PushKey, before: Iterable[int]) -> int:
        touched, now = 0, self._jobs[job].alone.get(key, NOBODY).tests.keys()
        for bit in {*before, *now}:
            touched |= 1 << bit
            found = self._of_test[bit]
            (found.add if bit in now else found.discard)((job, key))
            if not found:
                del self._of_test[bit]
        return touched

    def events_of(self, bit: int) -> Iterator[Event]:
        """The events of a test."""
        for job, key in self._of_test.get(bit, ()):
            if pushes.is_alone(self._jobs, job, key, bit):
                yield pushes.event_of(job, key, self._jobs[job].alone[key], bit)
