"""Find what the report of a CI job lacks as a proof that only the failures in it failed.

One rule for the verdict of `headgate test` and for the queue: nothing is excused unless the
report is complete. Each gap is a sentence that people read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.provenance import Proof
from service.testhealth.detector import runner_ends
from service.testhealth.detector.gap_texts import code as _code
from service.testhealth.detector.gap_texts import counted as _counted
from service.testhealth.detector.runner_ends import SPEAKERS, Command
from service.testhealth.runner_ends import RunnerEnd

WORDS_SHOWN_MAX = 5

SIGNALS_FROM = 128
"""A shell adds this to the number of the signal that ended a command."""

GENERAL_CODE = 1
"""Nearly every program ends with it for any fault, so a job cannot show what it means."""

DISTINCT_CODES: Mapping[str, frozenset[int]] = {
    "bazel test": frozenset({3}),
    "cargo nextest": frozenset({100}),
    "ctest": frozenset({8}),
    "gotestsum": frozenset({1}),
    "pytest": frozenset({1}),
}
"""Exit codes that a runner uses for failed tests and for no fault that its report leaves out.

`pytest` is without coverage, whose threshold ends it with 1 as well: `headgate test` calls it
`pytest-cov` then. gotestsum reports packages that do not build as failed. Jest, Vitest, PHPUnit,
RSpec, Maven and others end with 1 for thresholds, warnings, files that do not load, or errors
outside of tests, and do not report all of these.
"""

COUNTING: Mapping[str, int] = {"mocha": 255, "robot": 250}
"""Runners that end with the number of failed tests, and the highest number they use."""


UNPROVED = (
    "there is no report of the CI job itself: let the job send its OIDC token (on GitHub Actions by"
    " `permissions: id-token: write`) and run its tests by `headgate test`"
)

NO_HISTORY = (
    "no results of the target branch are known yet, so the tests that this job should report are"
    " not known: send results of the target branch first"
)

UNPROVED_HISTORY = (
    "nothing proves that the results of {job} on the target branch are its own, so the tests that"
    " it should report are not known: add `permissions: id-token: write` to the job there as well,"
    " and run its tests by `headgate test`"
)

STRENGTH = (Proof.NONE, Proof.TOKEN, Proof.RUN, Proof.JOB)
"""The proofs that an upload can have, the weakest first."""


@dataclass(frozen=True, slots=True)
class Account:
    """An upload's statements about its own completeness.

    `exit_code` None: not sent. `session` names one run of the sender, which makes
    `session_uploads` uploads in all, None: not said. `unsent_files` are report files that the
    sender found and could not send. `undelivered` is how many tests the files declare beyond
    those in them, `unread_failures` how many failures beyond those. `unknown_words` are outcomes
    in them that no reader knows. `command_key` is equal for equal commands. `answered` is the exit
    code that the sender was told to end with, None: not known. `is_interrupted`: a file shows that
    its runner stopped before its end. `proof` is what we found out ourselves; with JOB, `check_run`
    is the check run of the job that sent it. `begun_by` is the account that began its CI run, empty
    if unknown; None: nobody looked.
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
    unread_failures: int = 0
    unknown_words: tuple[str, ...] = ()
    check_run: str = ""
    begun_by: str | None = None


@dataclass(frozen=True, slots=True)
class MissingTest:
    """A test that the target branch has, and that is missing or skipped now.

    `has_neighbors`: other tests of its file, or of its class if it names no file, are reported.
    """

    name: str
    file: str
    classname: str
    has_neighbors: bool = False

    @property
    def label(self) -> str:
        """As people name it."""
        place = self.file or self.classname
        return f"{place}::{self.name}" if place else self.name


@dataclass(frozen=True, slots=True)
class Expectation:
    """The tests that earlier results on the target branch let us expect of a job.

    `expected`: how many tests should be reported; `missing` are those that are not, and `unnamed`
    how many more there are than were looked up. `skipped` passed on the target branch, and are
    skipped now without having been skipped on the own head of a pull request. `has_exit_code`: its
    earlier uploads sent the exit code of their command. `landed` are pull requests whose test runs
    are among the earlier results: what they deleted is expected only by results before them.
    `speaking` are the runners that always said there how they ended. `is_unproved`: nothing is
    expected because no earlier upload is proved to be the job's own. None instead of a value of
    this class: the repository has never reported on the branch, so nothing can be expected yet.
    """

    expected: int
    missing: tuple[MissingTest, ...] = ()
    unnamed: int = 0
    skipped: tuple[MissingTest, ...] = ()
    has_exit_code: bool = False
    landed: tuple[int, ...] = ()
    speaking: frozenset[str] = frozenset()
    is_unproved: bool = False

    @property
    def is_met(self) -> bool:
        """Return whether no change has to explain anything."""
        return not (self.missing or self.unnamed or self.skipped)


@dataclass(frozen=True, slots=True)
class ExitCodes:
    """Exit codes that mean for a job that tests failed and nothing else did.

    `named` are those that the setting `test_failure_exit_codes` names; `names_failure`: it names
    the word `failure`, for a CI job whose uploads send no code. `learned` are those that each
    command, by its key, has shown.
    """

    named: frozenset[int] = frozenset()
    names_failure: bool = False
    learned: frozenset[tuple[str, int]] = frozenset()


NO_CODES = ExitCodes()


@dataclass(frozen=True, slots=True)
class Changes:
    """The tests whose files the change under test deletes, and those whose files it touches."""

    deletes: Callable[[MissingTest], bool]
    touches: Callable[[MissingTest], bool]


@dataclass(frozen=True, slots=True)
class Part:
    """One upload of a job, as the rule needs it; `failed` counts the failures in its `tests`.

    `needs` is the least that must prove it: NONE unless it is of a test run, so that what it
    excuses may land. `ends` is what the runners of its command say; each upload of a session has
    all of it.
    """

    account: Account
    failed: int
    is_partial: bool = False
    needs: Proof = Proof.NONE
    tests: int = 0
    ends: tuple[RunnerEnd, ...] = ()


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
    codes: ExitCodes = NO_CODES


def gaps_of(report: JobReport, changes: Changes) -> tuple[str, ...]:
    """Return what is missing in the report, as sentences without a full stop; empty: complete."""
    gaps = [*_unproved(report.parts), *_unread(report.parts), *_unsent(report.parts)]
    gaps += _oddly_ended(report)
    gaps += _unexpected(report, changes)
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
    """Return whether another job may have made up results of a test run."""
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
    unread = sum(part.account.unread_failures for part in parts)
    if unread:
        yield f"its files declare {_counted(unread, 'failure')} more than they hold"
    words = dict.fromkeys(word for part in parts for word in part.account.unknown_words)
    if words:
        named = ", ".join(map(_code, list(words)[:WORDS_SHOWN_MAX]))
        yield f"its files name outcomes that are not known: {named}"


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
    """Yield how the command or the job ended, where that says more than that tests failed."""
    for account, command in _commands(report):
        said = runner_ends.gaps_of(command)
        yield from said
        # What a runner says of its end is worth more than what its code usually means.
        is_told = bool(said) or runner_ends.explains_code(command)
        yield from _odd_code(account, command.failed, report.codes, is_told=is_told)
    expects_code = report.expectation is not None and report.expectation.has_exit_code
    if expects_code and all(part.account.exit_code is None for part in report.parts):
        yield "the exit code of the command is missing, which earlier uploads of this job sent"
    if report.conclusion not in ("", "failure", "failed", "error"):
        yield f"the CI job ended as {_code(report.conclusion)}, not as `failure`"
    if report.conclusion and _was_excused(report.parts):
        yield "the command has ended with 0 already, so something else failed the CI job"


def _was_excused(parts: Sequence[Part]) -> bool:
    """Return whether every command that failed was told to end with 0."""
    failed = [part.account for part in parts if part.account.exit_code]
    return bool(failed) and all(account.answered == 0 for account in failed)


def _commands(report: JobReport) -> Sequence[tuple[Account, Command]]:
    """Return each command once, with what all of its uploads hold."""
    speaking = report.expectation.speaking if report.expectation else frozenset[str]()
    by_session: dict[str, list[Part]] = {}
    for at, part in enumerate(report.parts):
        by_session.setdefault(part.account.session or f"#{at}", []).append(part)
    return [
        (
            sent[-1].account,
            Command(
                runner=sent[-1].account.runner,
                exit_code=sent[-1].account.exit_code,
                ends=tuple(dict.fromkeys(end for part in sent for end in part.ends)),
                tests=sum(part.tests for part in sent),
                failed=sum(part.failed for part in sent),
                is_believed=SPEAKERS.get(sent[-1].account.runner) in speaking,
            ),
        )
        for sent in by_session.values()
    ]


def _odd_code(account: Account, failed: int, codes: ExitCodes, *, is_told: bool) -> Iterable[str]:
    """Yield whether a command's exit code leaves open that something beside its tests failed.

    `is_told`: its runner has told what it means.
    """
    code = account.exit_code
    if code is None:
        if failed and not codes.names_failure:
            yield (
                "the exit code of the command is not known, so more than tests may have failed:"
                " run it by `headgate test`, or see `test_failure_exit_codes`"
            )
    elif code > SIGNALS_FROM and account.runner not in COUNTING:
        yield f"the command was ended by signal {code - SIGNALS_FROM} (exit code {code})"
    elif code and not failed:
        yield f"the command ended with {code}, but none of its tests failed"
    elif code and not is_told and not _is_of_tests(account, failed, codes):
        usual = _usual_code(account.runner, failed)
        if usual:
            yield f"the command ended with {code}, but failed tests alone end with {usual}"
        else:
            yield (
                f"the command ended with {code}, and nothing shows that it does so for failed"
                " tests alone: see `test_failure_exit_codes`"
            )


def _is_of_tests(account: Account, failed: int, codes: ExitCodes) -> bool:
    """Return whether a command ends with this code when tests failed and nothing else did."""
    code, runner = account.exit_code or 0, account.runner
    if code in codes.named or (account.command_key, code) in codes.learned:
        return True
    if runner in COUNTING:
        return code == min(failed, COUNTING[runner])
    return code in DISTINCT_CODES.get(runner, frozenset())


def _usual_code(runner: str, failed: int) -> str:
    """The code for failed tests alone, empty if the runner has none that says so."""
    if runner in COUNTING:
        return f"{min(failed, COUNTING[runner])}"
    return " or ".join(str(code) for code in sorted(DISTINCT_CODES.get(runner, ())))


def _unexpected(report: JobReport, changes: Changes) -> Iterable[str]:
    """Return whether the tests of the report are those that the job should have reported."""
    expectation = report.expectation
    if expectation is None:
        yield NO_HISTORY
        return
    if expectation.is_unproved:
        yield UNPROVED_HISTORY.format(job=_code(report.job))
        return
    if not expectation.expected:
        yield (
            f"{_code(report.job)} has not reported on the target branch yet,"
            " so the tests that it should report are not known"
        )
        return
    have_loaded = runner_ends.have_loaded_all([command for _, command in _commands(report)])
    gone = [
        test
        for test in expectation.missing
        if not _is_removed(test, changes, have_loaded=have_loaded)
    ]
    missing = len(gone) + expectation.unnamed
    if missing:
        are = "is" if missing == 1 else "are"
        of = f"{missing:,} of {expectation.expected:,} tests that {_code(report.job)} reported"
        yield f"{of} on the target branch {are} missing{_example(gone)}"
    skipped = [test for test in expectation.skipped if not changes.touches(test)]
    if skipped:
        are = "is" if len(skipped) == 1 else "are"
        of = _counted(len(skipped), "test")
        yield f"{of} that passed on the target branch {are} skipped{_example(skipped)}"


def _is_removed(test: MissingTest, changes: Changes, *, have_loaded: bool) -> bool:
    """Return whether the change under test has removed a test: with its file, or in it.

    A file without any result has not loaded, unless its runner says that all files have.
    """
    is_loaded = test.has_neighbors or have_loaded
    return changes.deletes(test) or (is_loaded and changes.touches(test))


def _example(tests: Iterable[MissingTest]) -> str:
    named = sorted(test.label for test in tests)
    return f", such as {_code(named[0])}" if named else ""
