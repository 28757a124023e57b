"""Other uploads of the same attempt of a CI run: who sent the same, who reports as the same job.

A job may send its report and leave it as an artifact besides; whichever comes second is the
first once more (FLAKY.md 2.4).
"""

from collections.abc import Iterable, Sequence

from service.database.database import Tx
from service.testhealth.operations.classify import Collected, Doubts
from service.testhealth.operations.upload_values import ReadFile, UploadMeta
from service.testhealth.store import artifacts, uploads
from service.testhealth.store.uploads_rows import Upload

AMBIGUOUS = (
    "job_ambiguous: {machine} and {other} report as one job in the same attempt."
    " Give each matrix job its own name: `--job`."
)

Kin = Sequence[Upload]
"""The complete uploads of one attempt of a CI run, in no order."""


def kin_of(session: Tx, repository_id: int, meta: UploadMeta) -> Kin:
    """Those of the attempt that the upload says it is of; nothing where it names no run."""
    if meta.run_id is None:
        return ()
    return uploads.of_run(session, repository_id, meta.run_id, meta.run_attempt)


def holder_of(
    session: Tx,
    repository_id: int,
    kin: Kin,
    files: Iterable[ReadFile],
    known: Doubts | Collected,
) -> Upload | None:
    """The upload that has a file of this one, if all its files are known from such uploads.

    What we collected may be known from any; what CI sends counts as known from artifacts alone,
    since two of its jobs may well have the same report.
    """
    holders = {file.sha256: upload for upload in kin for file in upload.files}
    wanted = sorted({each.sha256 for each in files} - {""})
    if not wanted or not holders.keys() >= set(wanted):
        return None
    if not isinstance(known, Collected):
        found = {holders[each].id for each in wanted}
        if artifacts.uploads_among(session, repository_id, found) != found:
            return None
    return holders[wanted[0]]


def ambiguity_in(kin: Kin, meta: UploadMeta) -> str | None:
    """The warning where another machine reported under the same job (FLAKY.md 2.2)."""
    others = sorted(
        each.machine
        for each in kin
        if each.is_eligible and each.job == meta.job
        if each.machine is not None and each.machine != meta.machine
    )
    if meta.machine is None or not others:
        return None
    return AMBIGUOUS.format(machine=meta.machine, other=others[0])
