"""What the report of a CI job lacks as a proof that only the failures in it failed.

One rule for the verdict of `headgate test` and for the queue: nothing is excused unless the
report is complete. Each gap is a sentence that people read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.provenance import Proof

MISSING_SHARE_MAX = 0.01
"""This share of the expected tests may be missing: parameters can give a test a new name."""

NAME_MAX = 200
NO_NAME = "(no job)"

SIGNALS_FROM = 128
"""A shell adds this to the number of the signal that ended a command."""

DEFAULT_CODES = frozenset({1})
CODES: Mapping[str, frozenset[int]] = {
    "bazel": frozenset({3}),
    "cargo": frozenset({100, 101}),
    "pest": frozenset({1, 2}),
    "phpunit": frozenset({1, 2}),
}
"""Exit codes by which runners say that tests failed; of runners that differ from 1.

`cargo test` ends with 101, `cargo nextest` with 100.
"""

COUNTING: Mapping[str, int] = {"mocha": 255, "robot": 250}
"""Runners that end with the number of failed tests, and the highest number they use."""


UNPROVED = (
    "there is no report of the CI job itself: add `permissions: id-token: write` to the job and run"
    " its tests by `headgate test`"
)

NO_HISTORY = (
    "no results of the target branch are known yet, so the tests that this job should report are"
    " not known: send results of the target branch first"
)

STRENGTH = (Proof.NONE, Proof.TOKEN, Proof.RUN, Proof.JOB)
"""What can prove an upload, the weakest first."""


@dataclass(frozen=True, slots=True)
class Account:
    """What an upload says about its own completeness.

    `exit_code` None: not sent. `session` names one run of the sender, which makes
    `session_uploads` uploads in all, None: not said. `unsent_files` are report files that the
    sender found and could not send. `undelivered` is how many tests the files declare beyond
    those in them. `command_key` is equal for equal commands. `answered` is the exit code that
    the sender was told to end with, None: not known. `is_interrupted`: a file shows that its
    runner stopped before its end. `proof` is what we found out ourselves; with JOB, `check_run` is
    the check run of the job that sent it.
    """

    exit_code: int | None = None
    runner: str = ""
    command_key: str = ""
    session: str = ""
    session_uploads: int | None = None
    unsent_files: int = 0
    undelivered: int = 0
    answered: int | None = None
    is_interrupted: bool = False
    proof: Proof = Proof.NONE
    check_run: str = ""


@dataclass(frozen=True, slots=True)
class MissingTest:
    """A test that the job reported on the target branch and does not report now."""

    name: str
    file: str
    classname: str

    @property
    def label(self) -> str:
        """As people name it."""
        place = self.file or self.classname
        return f"{place}::{self.name}" if place else self.name


@dataclass(frozen=True, slots=True)
class Expectation:
    """What earlier results on the target branch let us expect of a job.

    `expected`: how many tests it should report; `missing`: how many of them it does not;
    `named`: these tests, none when they are too many to look at. `has_exit_code`: its earlier
    uploads sent the exit code of their command. None instead of a value of this class: the
    repository has never reported on the branch, so nothing can be expected yet.
    """

    expected: int
    missing: int = 0
    named: tuple[MissingTest, ...] = ()
    has_exit_code: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One upload of a job, as the rule needs it; `failed` counts the failures in it.

    `needs` is the least that must prove it: NONE unless it is of a test run, so that what it
    excuses may land.
    """

    account: Account
    failed: int
    is_partial: bool = False
    needs: Proof = Proof.NONE


@dataclass(frozen=True, slots=True)
class JobReport:
    """All that a CI job has uploaded. `job` is its name as people know it.

    `jobs_missing` are jobs of the same CI run that reported on the target branch and not now.
    `conclusion` is how the provider says that the job ended, empty while that is not known.
    """

    job: str
    parts: tuple[Part, ...]
    expectation: Expectation | None
    jobs_missing: tuple[str, ...] = ()
    conclusion: str = ""


def gaps_of(report: JobReport, is_changed: Callable[[MissingTest], bool]) -> tuple[str, ...]:
    """Return what is missing in the report, as sentences without a full stop; empty: complete.

    `is_changed`: whether the change under test touches the file of a test, and so may have
    removed the test.
    """
    gaps = [*_unproved(report.parts), *_unread(report.parts), *_unsent(report.parts)]
    gaps += _oddly_ended(report)
    gaps += _unexpected(report, is_changed)
    gaps += [
        f"{_code(job)} reported on the target branch and not in this CI run"
        for job in report.jobs_missing
    ]
    return tuple(gaps)


def is_enough(proof: Proof, needs: Proof) -> bool:
    """Return whether a proof of an upload is at least as strong as another."""
    return STRENGTH.index(proof) >= STRENGTH.index(needs)


def is_sealed(parts: Iterable[Part]) -> bool:
    """Return whether every upload has arrived that its sender announced."""
    return not any(True for _ in _absent_uploads(parts))


def _unproved(parts: Sequence[Part]) -> Iterable[str]:
    """Whether another job may have made up results of a test run."""
    if any(not is_enough(part.account.proof, part.needs) for part in parts):
        yield UNPROVED


def _unread(parts: Sequence[Part]) -> Iterable[str]:
    if any(part.is_partial for part in parts):
        yield "a report file could not be read to its end"
    if any(part.account.is_interrupted for part in parts):
        yield "a report file shows that its runner was stopped before its end"
    undelivered = sum(part.account.undelivered for part in parts)
    if undelivered:
        yield f"its files declare {_counted(undelivered, 'test')} more than they hold"


def _unsent(parts: Sequence[Part]) -> Iterable[str]:
    for absent, of in _absent_uploads(parts):
        have = "has" if absent == 1 else "have"
        yield f"{absent:,} of {of:,} uploads {have} not arrived"
    unsent = max((part.account.unsent_files for part in parts), default=0)
    if unsent:
        yield f"{_counted(unsent, 'report file')} could not be sent"


def _absent_uploads(parts: Iterable[Part]) -> Iterable[tuple[int, int]]:
    """For each session that lacks uploads: how many, and of how many."""
    arrived: dict[str, int] = {}
    announced: dict[str, int] = {}
    for part in parts:
        session, uploads = part.account.session, part.account.session_uploads
        if session and uploads is not None:
            arrived[session] = arrived.get(session, 0) + 1
            announced[session] = max(announced.get(session, 0), uploads)
    for session, uploads in announced.items():
        if arrived[session] < uploads:
            yield uploads - arrived[session], uploads


def _oddly_ended(report: JobReport) -> Iterable[str]:
    """How the command or the job ended, where that says more than that tests failed."""
    for account, failed in _commands(report.parts):
        code = account.exit_code
        if code is not None and code > SIGNALS_FROM and account.runner not in COUNTING:
            yield f"the command was ended by signal {code - SIGNALS_FROM} (exit code {code})"
        elif code and not is_of_tests(code, account.runner, failed):
            usual = _usual_code(account.runner, failed)
            yield f"the command ended with {code}, but failed tests alone end with {usual}"
    expects_code = report.expectation is not None and report.expectation.has_exit_code
    if expects_code and all(part.account.exit_code is None for part in report.parts):
        yield "the exit code of the command is missing, which earlier uploads of this job sent"
    if report.conclusion not in ("", "failure", "failed", "error"):
        yield f"the CI job ended as {_code(report.conclusion)}, not as `failure`"
    if report.conclusion and _was_excused(report.parts):
        yield "the command has ended with 0 already, so something else failed the CI job"


def _was_excused(parts: Sequence[Part]) -> bool:
    """Whether every command that failed was told to end with 0."""
    failed = [part.account for part in parts if part.account.exit_code]
    return bool(failed) and all(account.answered == 0 for account in failed)


def _commands(parts: Sequence[Part]) -> Iterable[tuple[Account, int]]:
    """Each command once, with the failures in all of its uploads."""
    by_session: dict[str, tuple[Account, int]] = {}
    for at, part in enumerate(parts):
        key = part.account.session or f"#{at}"
        failed = by_session[key][1] if key in by_session else 0
        by_session[key] = (part.account, failed + part.failed)
    return by_session.values()


def is_of_tests(code: int, runner: str, failed: int) -> bool:
    """Return whether a runner ends with this code when tests failed and nothing else did."""
    if runner in COUNTING:
        return code == 1 or code == min(failed, COUNTING[runner])
    return code in CODES.get(runner, DEFAULT_CODES)


def _usual_code(runner: str, failed: int) -> str:
    if runner in COUNTING:
        return f"{min(failed, COUNTING[runner])}"
    return " or ".join(str(code) for code in sorted(CODES.get(runner, DEFAULT_CODES)))


def _unexpected(report: JobReport, is_changed: Callable[[MissingTest], bool]) -> Iterable[str]:
    """Whether the tests of the report are those that the job should have reported."""
    expectation = report.expectation
    if expectation is None:
        yield NO_HISTORY
        return
    if not expectation.expected:
        yield (
            f"{_code(report.job)} has not reported on the target branch yet,"
            " so the tests that it should report are not known"
        )
        return
    removed = [test for test in expectation.named if is_changed(test)]
    missing = expectation.missing - len(removed)
    if missing > expectation.expected * MISSING_SHARE_MAX:
        gone = set(removed)
        named = sorted(test.label for test in expectation.named if test not in gone)
        example = f", such as {_code(named[0])}" if named else ""
        are = "is" if missing == 1 else "are"
        of = f"{missing:,} of {expectation.expected:,} tests that {_code(report.job)} reported"
        yield f"{of} on the target branch {are} missing{example}"


def _code(text: str) -> str:
    """A name of a stranger's, which no comment takes for anything but a name."""
    plain = " ".join(text.replace("`", "'").split())
    return f"`{plain[:NAME_MAX] or NO_NAME}`"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
