"""An upload on its way in: what its results say, and what of it is stored beside them.

A job may send its report and leave it as an artifact, too; the second one is a duplicate of the
first (docs/design/reports.md).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from datetime import datetime

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.provenance import Proof
from service.testhealth.detector.completeness import Account
from service.testhealth.operations import answers
from service.testhealth.operations.classify import Classified, Collected, Doubts
from service.testhealth.operations.identify import Identified
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.reports import failures
from service.testhealth.reports.duplicates import ResultsByTest
from service.testhealth.reports.reading import WORDS_MAX
from service.testhealth.reports.results import CaseResult, Counts, FileStatus, Outcome, ReportFile
from service.testhealth.reports.uploads import LETTERS, UploadClass
from service.testhealth.store import artifacts, bitmaps, sketches, uploads
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.bitmaps import PackedSet
from service.testhealth.store.cases import Place
from service.testhealth.store.uploads import Upload
from service.vocabulary import Actor

STACK_MAX = 8000
"""Characters of a failure's text."""

WARNINGS_MAX = 100

CLOCK_AHEAD = "clock_ahead: `ran_at` lies ahead of our clock; the time of receipt counts."
NO_REPORT = "no_report: no report file came; this only says how the test runner ended."
AMBIGUOUS = (
    "job_ambiguous: {machine} and {other} report as one job in the same attempt."
    " Give each matrix job its own name: `--job`."
)

Kin = Sequence[Upload]
"""The complete uploads of one attempt of a CI run, in any order."""


@dataclass(frozen=True, slots=True)
class NamedOwners:
    """Owners of the files of an upload's tests; `trouble` says why they were not found."""

    of_file: Mapping[str, tuple[str, ...]]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Arrived:
    """An upload as it was sent, when, and what reading it and asking the provider returned.

    `owners` None: it has no CODEOWNERS file.
    """

    id: str
    actor: Actor
    repository: RepositoryRecord
    meta: UploadMeta
    files: tuple[ReportFile, ...]
    ran_at: datetime
    now: datetime
    source: Doubts | Collected
    counts: Counts
    owners: NamedOwners | None = None

    @property
    def place(self) -> Place:
        """The repository whose tests it has."""
        return Place(self.repository.org_id, self.repository.id)


# Results.


@dataclass(frozen=True, slots=True)
class Findings:
    """An upload's results: sets of tests with a single attempt that did not fail, others apart.

    `new_passed` and `new_skipped` are members of the sets whose test rows change. `letters` are
    the attempts of the tests apart, `attempts` theirs as they are stored, before it is known which
    are quarantined or trusted. `owners` has the owners of all tests; it is empty when the upload
    names none. `times` are those of the members of `passed`, as they are stored.
    """

    passed: PackedSet | None
    passed_size: int
    skipped: PackedSet | None
    new_passed: Sequence[int]
    new_skipped: Sequence[int]
    apart: Mapping[int, CaseResult]
    letters: Mapping[int, str]
    attempts: tuple[StoredAttempt, ...]
    owners: Mapping[int, tuple[str, ...]]
    times: bytes | None = None

    @property
    def changes(self) -> int:
        """Return how many test rows noting the upload changes, at most."""
        return len(self.new_passed) + len(self.new_skipped) + len(self.apart)


def findings_of(
    arrived: Arrived, results: ResultsByTest[int], unrun: Set[int], unpassed: Set[int]
) -> Findings:
    """Take an upload's results apart; `results` has them by the number of the test.

    Runs of tests in `unrun` are to be noted, passes of those in `unpassed`, too.
    """
    passed, skipped = list(results.passed), []
    apart: dict[int, CaseResult] = {}
    for no, result in sorted(results.others.items()):
        if not _is_once(result):
            apart[no] = result
        elif result.attempts[0].outcome is Outcome.PASSED:
            passed.append(no)
        else:
            skipped.append(no)
    return Findings(
        passed=bitmaps.packed_set(passed),
        passed_size=len(passed),
        skipped=bitmaps.packed_set(skipped),
        new_passed=[no for no in passed if no in unrun or no in unpassed],
        new_skipped=[no for no in skipped if no in unrun],
        apart=apart,
        letters={
            no: "".join(LETTERS[each.outcome] for each in result.attempts)
            for no, result in apart.items()
        },
        attempts=tuple(
            attempt for no, result in apart.items() for attempt in _attempts(arrived, no, result)
        ),
        owners=_owners(results, arrived.owners),
        times=_times(results, passed),
    )


def _times(results: ResultsByTest[int], passed: Sequence[int]) -> bytes | None:
    """Return the times of tests that passed at once, in the order of their numbers."""
    once, others = results.passed, results.others
    seconds = (
        once[no].duration_s if no in once else others[no].attempts[0].duration_s
        for no in sorted(passed)
    )
    return sketches.packed_times(sketches.buckets_of(seconds))


def _is_once(result: CaseResult) -> bool:
    """Return whether one attempt says it all, so that membership of a set is enough."""
    first = result.attempts[0].outcome
    return (
        len(result.attempts) == 1
        and first is not Outcome.FAILED
        and (result.is_comparable or first is Outcome.SKIPPED)
    )


def _owners(
    results: ResultsByTest[int], named: NamedOwners | None
) -> Mapping[int, tuple[str, ...]]:
    """Return the number of each test → its owners; empty when the upload names none."""
    if named is None or named.trouble:
        return {}
    both = (results.passed.items(), results.others.items())
    return {no: named.of_file[case.file] for tests in both for no, case in tests}


def _attempts(arrived: Arrived, no: int, result: CaseResult) -> Iterable[StoredAttempt]:
    for n, attempt in enumerate(result.attempts, 1):
        failed = attempt.outcome is Outcome.FAILED
        seconds = attempt.duration_s
        yield StoredAttempt(
            upload=arrived.id,
            no=no,
            n=n,
            ran_at=arrived.ran_at,
            outcome=attempt.outcome,
            failure=failures.key_of(attempt, arrived.meta.source_root) if failed else None,
            headline=failures.headline_of(attempt) if failed else None,
            stack=attempt.stack[:STACK_MAX] if failed and attempt.stack else None,
            duration_ms=None if seconds is None else round(seconds * 1000),
            is_comparable=result.is_comparable,
        )


# The upload itself.


def upload_of(arrived: Arrived, tests: Identified, classified: Classified, kin: Kin) -> Upload:
    """Return the upload as it is stored, without its sets."""
    meta, files = arrived.meta, arrived.files
    return Upload(
        id=arrived.id,
        digest=digest_of(arrived),
        kind=classified.kind.value,
        code_id=classified.code_id,
        sha=meta.sha,
        job=meta.job,
        ran_at=arrived.ran_at,
        received_at=arrived.now,
        tree_sha=meta.tree_sha,
        branch=meta.branch,
        pr_number=meta.pr_number,
        prs=classified.prs,
        run_id=meta.run_id,
        run_attempt=meta.run_attempt,
        run_url=meta.run_url,
        variant=meta.variant,
        machine=meta.machine,
        command_exit_code=meta.command_exit_code or 0,
        counts=asdict(arrived.counts),
        files=answers.stored_files(files),
        warnings=_warnings(arrived, tests, classified, kin),
        is_eligible=bool(files) and classified.kind is not UploadClass.UNTRUSTED,
        is_mass=tests.is_mass,
        is_partial=any(
            each.status is not FileStatus.ACCEPTED or each.is_interrupted for each in files
        ),
        account=account_of(arrived),
        position=arrived.source.position,
        runner_ends=meta.runner_ends,
    )


def account_of(arrived: Arrived) -> Account:
    """Return what the upload says about its own completeness, and the proof of its CI run."""
    meta, files, source = arrived.meta, arrived.files, arrived.source
    return Account(
        exit_code=meta.command_exit_code,
        runner=meta.runner.lower(),
        command_key=meta.command_key,
        session=meta.session,
        session_uploads=meta.session_uploads,
        unsent_files=meta.unsent_files,
        is_interrupted=any(each.is_interrupted for each in files),
        undelivered=sum(each.undelivered for each in files),
        unread_failures=sum(each.unread_failures for each in files),
        unknown_words=tuple(sorted({word for each in files for word in each.unknown_words}))[
            :WORDS_MAX
        ],
        proof=Proof.RUN if isinstance(source, Collected) else source.proof,
        check_run="" if isinstance(source, Collected) else source.check_run,
        begun_by=source.begun_by,
    )


def _warnings(
    arrived: Arrived, tests: Identified, classified: Classified, kin: Kin
) -> tuple[str, ...]:
    """Return what a reader should know, at most 100 sentences."""
    said = list(classified.warnings)
    if not arrived.files:
        said.append(NO_REPORT)
    if arrived.meta.ran_at is not None and arrived.ran_at != arrived.meta.ran_at:
        said.append(CLOCK_AHEAD)
    ambiguity = _ambiguity_in(kin, arrived.meta)
    if ambiguity is not None and classified.kind is not UploadClass.UNTRUSTED:
        said.append(ambiguity)
    said += tests.warnings
    if arrived.owners is not None and arrived.owners.trouble:
        said.append(arrived.owners.trouble)
    for each in arrived.files:
        if each.status is not FileStatus.ACCEPTED:
            said.append(f"{each.name} was {each.status.value}.")
        said += [f"{each.name}: {warned.text}" for warned in each.warnings]
    return tuple(said[:WARNINGS_MAX])


def _ambiguity_in(kin: Kin, meta: UploadMeta) -> str | None:
    """Return the warning that another machine reported under the same job."""
    others = sorted(
        each.machine
        for each in kin
        if each.is_eligible and each.job == meta.job
        if each.machine is not None and each.machine != meta.machine
    )
    if meta.machine is None or not others:
        return None
    return AMBIGUOUS.format(machine=meta.machine, other=others[0])


# Duplicates.


def digest_of(arrived: Arrived) -> str:
    """Return a digest that is equal for the same content of the same run."""
    meta, source = arrived.meta, arrived.source
    # Two jobs may well have equal reports.
    sender = "" if isinstance(source, Collected) else source.check_run
    parts = [
        str(arrived.repository.id),
        meta.sha,
        meta.run_id or "",
        str(meta.run_attempt),
        meta.job,
        meta.variant,
        "" if meta.ran_at is None else meta.ran_at.isoformat(),
        *((sender,) if sender else ()),
        *sorted(each.sha256 for each in arrived.files),
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def kin_of(session: Tx, repository_id: int, meta: UploadMeta) -> Kin:
    """Return the uploads of the attempt that the upload names; empty if it names no run."""
    if meta.run_id is None:
        return ()
    return uploads.of_run(session, repository_id, meta.run_id, meta.run_attempt)


def first_of(session: Tx, arrived: Arrived, classified: Classified, kin: Kin) -> Upload | None:
    """Return the upload that this one repeats.

    An untrusted upload makes no trusted one a duplicate: a fork could hide a failure by sending
    the same file before.
    """
    same = uploads.by_digest(session, arrived.repository.id, digest_of(arrived))
    if same is not None:
        return same
    is_trusted = classified.kind is not UploadClass.UNTRUSTED
    able = [upload for upload in kin if upload.is_eligible or not is_trusted]
    return _holder_of(session, arrived, able)


def _holder_of(session: Tx, arrived: Arrived, kin: Kin) -> Upload | None:
    """Return an upload that has a file of this one, if such uploads have all its files.

    A collected artifact may repeat any upload. An upload by CI repeats only artifacts, because
    two of its jobs may well have the same report.
    """
    holders = {file.sha256: upload for upload in kin for file in upload.files}
    wanted = sorted({each.sha256 for each in arrived.files} - {""})
    if not wanted or not holders.keys() >= set(wanted):
        return None
    if not isinstance(arrived.source, Collected):
        uploads_holding = {holders[each].id for each in wanted}
        if (
            artifacts.uploads_among(session, arrived.repository.id, uploads_holding)
            != uploads_holding
        ):
            return None
    return holders[wanted[0]]
