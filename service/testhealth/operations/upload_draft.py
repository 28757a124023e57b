"""An upload on its way in, and what of it is stored beside the results of its tests."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from service.database.records import RepositoryRecord
from service.testhealth.detector.completeness import Account, Proof
from service.testhealth.detector.evidence import is_mass_failure
from service.testhealth.operations import answers, upload_kin
from service.testhealth.operations.classify import Classified, Collected, Doubts
from service.testhealth.operations.upload_cases import Identified
from service.testhealth.operations.upload_kin import Kin
from service.testhealth.operations.upload_values import ReadFile, UploadMeta
from service.testhealth.reports import duplicates
from service.testhealth.reports.duplicates import Result
from service.testhealth.reports.results import Counts, FileStatus, Outcome
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store.cases import Place
from service.testhealth.store.uploads_rows import Upload
from service.vocabulary import Actor

WARNINGS_MAX = 100

CLOCK_AHEAD = "clock_ahead: `ran_at` lies ahead of our clock; the time of receipt counts."


@dataclass(frozen=True, slots=True)
class Arrived:
    """An upload on its way in: what was sent, when, and what reading and asking said of it."""

    id: str
    actor: Actor
    repository: RepositoryRecord
    meta: UploadMeta
    files: tuple[ReadFile, ...]
    ran_at: datetime
    now: datetime
    known: Doubts | Collected
    counts: Counts

    @property
    def place(self) -> Place:
        """Whose tests it speaks of."""
        return Place(self.repository.org_id, self.repository.id)


@dataclass(frozen=True, slots=True)
class Sums:
    """What an upload's results come to: tests that failed in the end, by id, and how odd it is.

    `warnings` are about the names of its tests.
    """

    failing: Mapping[str, Result]
    is_mass: bool
    warnings: tuple[str, ...]


def sums_of(found: Identified) -> Sums:
    """The sums of the results."""
    others = found.results.others
    failing = {each: did for each, did in others.items() if did.outcome is Outcome.FAILED}
    muddled = duplicates.duplicates_warned(others.values())
    warnings = found.warnings if muddled is None else (*found.warnings, muddled.text)
    return Sums(failing, is_mass_failure(found.results.ran, len(failing)), warnings)


def upload_of(arrived: Arrived, sums: Sums, classified: Classified, kin: Kin) -> Upload:
    """The upload as it is stored, without its sets."""
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
        warnings=_warnings(arrived, sums, classified, kin),
        is_eligible=classified.kind is not UploadClass.UNTRUSTED,
        is_mass=sums.is_mass,
        is_partial=any(_is_partial(each) for each in files),
        account=_account_of(arrived),
    )


def _is_partial(file: ReadFile) -> bool:
    """Whether the file was not read to its end, or its runner stopped before the end."""
    return file.report.status is not FileStatus.ACCEPTED or file.report.is_interrupted


def _account_of(arrived: Arrived) -> Account:
    """What the upload says about its own completeness, and what proves that it is of its run."""
    meta, files, known = arrived.meta, arrived.files, arrived.known
    return Account(
        exit_code=meta.command_exit_code,
        runner=meta.runner.lower(),
        command_key=meta.command_key,
        session=meta.session,
        session_uploads=meta.session_uploads,
        unsent_files=meta.unsent_files,
        is_interrupted=any(each.report.is_interrupted for each in files),
        undelivered=sum(each.report.undelivered for each in files),
        proof=Proof.SENDER if isinstance(known, Collected) else known.proof,
    )


def _warnings(arrived: Arrived, sums: Sums, classified: Classified, kin: Kin) -> tuple[str, ...]:
    """What a reader should know, at most 100 sentences."""
    said = list(classified.warnings)
    if arrived.meta.ran_at is not None and arrived.ran_at != arrived.meta.ran_at:
        said.append(CLOCK_AHEAD)
    ambiguity = upload_kin.ambiguity_in(kin, arrived.meta)
    if ambiguity is not None and classified.kind is not UploadClass.UNTRUSTED:
        said.append(ambiguity)
    said += sums.warnings
    for each in arrived.files:
        if each.report.status is not FileStatus.ACCEPTED:
            said.append(f"{each.name} was {each.report.status.value}.")
        said += [f"{each.name}: {warned.text}" for warned in each.report.warnings]
    return tuple(said[:WARNINGS_MAX])


def digest_of(arrived: Arrived) -> str:
    """What is equal for the same content of the same run (FLAKY.md 2.4)."""
    meta = arrived.meta
    parts = [
        str(arrived.repository.id),
        meta.sha,
        meta.run_id or "",
        str(meta.run_attempt),
        meta.job,
        meta.variant,
        "" if meta.ran_at is None else meta.ran_at.isoformat(),
        *sorted(each.sha256 for each in arrived.files),
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
