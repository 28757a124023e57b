"""Plans of CI by the files of a commit: which job cannot pass once which other has failed.

The rules are in docs/design/early-failures.md 4. Anything that a file leaves unclear is no rule.
"""

from dataclasses import dataclass

from service.provider.ci import FailedPart


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job of a CI file, by its key there.

    `name` are the literal parts of the names of its checks: one part is the whole name, between
    two parts stands any text, as the values of a matrix. `stops` are the keys of the jobs of the
    file without whose pass it may not pass, `stopped_surely` those whose failure CI itself lets no
    condition overcome. `steps` are the names of the steps whose failure fails
    it. `may_fail`: its failure may count for nothing. `version` is a digest of what the file says
    about it.
    """

    file: str
    key: str
    name: tuple[str, ...]
    stops: frozenset[str] = frozenset()
    stopped_surely: frozenset[str] = frozenset()
    steps: frozenset[str] = frozenset()
    may_fail: bool = False
    version: str = ""

    def reports(self, check: str) -> bool:
        """Return whether a check may be one of this job."""
        if len(self.name) == 1:
            return check == self.name[0]
        first, *inner, last = self.name
        if not check.startswith(first) or not check.endswith(last):
            return False
        at, end = len(first), len(check) - len(last)
        for part in inner:
            found = check.find(part, at, max(at, end))
            if found < 0:
                return False
            at = found + len(part)
        return at <= end


@dataclass(frozen=True, slots=True)
class MayDoom:
    """A file's statement that a failed part may leave a required check no way to pass.

    `job` is the key of the part's job. `version` changes with what the file says about the job of
    the required check, which may look at what failed; empty: the part is in that job itself.
    `is_certain`: the check cannot pass whatever its job does, as long as the part stays failed.
    """

    file: str
    job: str
    version: str
    is_certain: bool


@dataclass(frozen=True, slots=True)
class CiPlan:
    """The jobs of all CI files of a commit that could be read."""

    jobs: tuple[PlannedJob, ...] = ()

    def may_doom(self, file: str, required: str, part: FailedPart) -> MayDoom | None:
        """Return how a failed part of a run of this file may doom a required check of that run.

        None: the file does not say so, or is not understood.
        """
        stopped, failed = self.job_of(file, required), self.job_of(file, part.job)
        if stopped is None or failed is None or stopped.may_fail or failed.may_fail:
            return None
        if part.step and part.step not in failed.steps:
            return None
        if stopped is failed:
            # The whole job has failed already, or another one of the same matrix.
            if part.job != required or not (part.step or part.test):
                return None
        elif failed.key not in stopped.stops:
            return None
        # A failed step fails its own job whatever else the job does. A test may run again in it.
        is_own = stopped is failed
        is_certain = not part.test and (is_own or failed.key in stopped.stopped_surely)
        return MayDoom(file, failed.key, "" if is_own else stopped.version, is_certain)

    def job_of(self, file: str, check: str) -> PlannedJob | None:
        """Return the only job of a file that may report a check; None: none, or not one alone."""
        found = [job for job in self.jobs if job.file == file and job.reports(check)]
        return found[0] if len(found) == 1 else None

    def is_root(self, file: str, check: str, failed: frozenset[str]) -> bool:
        """Return whether a failed check failed by itself: no failed job keeps it from passing."""
        own = self.job_of(file, check)
        if own is None:
            return False
        others = (job for name in failed if (job := self.job_of(file, name)) is not None)
        return not any(job.key in own.stops for job in others)
