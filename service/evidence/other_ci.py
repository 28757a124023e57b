"""Match uploads of other CI systems to the failed checks that show their builds and jobs.

The provider does not know these jobs. A check of theirs has the address of a page, and a proved
upload has the addresses of its job and of its build (docs/design/evidence.md 5).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from service.mergequeue.engine.model import Run
from service.provenance import Proof
from service.provider.ci import CiJob
from service.testhealth.reports import jobs
from service.testhealth.store.uploads import Upload
from service.vocabulary import Check, CheckOutcome

ADDRESS = "://"
"""The mark in the id of a job of another CI, which is its page; the provider's are numbers."""


def jobs_of(
    checks: Iterable[Check], sent: Sequence[Upload]
) -> Mapping[str, tuple[CiJob, tuple[Upload, ...]]]:
    """Return each of these checks that shows a job of another CI, with the uploads of that job."""
    theirs = [each for each in sent if ADDRESS in each.account.check_run]
    found = {check.id: (_job(check), _uploads_of(check, theirs)) for check in checks}
    return {each: (job, uploads) for each, (job, uploads) in found.items() if uploads}


def builds_of(uploads: Sequence[Upload], sent: Sequence[Upload]) -> tuple[Upload, ...]:
    """Return all uploads of the builds that these are of."""
    builds = {each.run_id for each in uploads}
    return tuple(each for each in sent if each.run_id in builds)


def revoked_in(run: Run, doubts: Sequence[tuple[Upload, Upload]]) -> frozenset[str]:
    """Return the required checks of the jobs to which both uploads of a pair belong."""
    required = {one.name for one in run.required}
    pages = {
        later.account.check_run
        for earlier, later in doubts
        if ADDRESS in later.account.check_run
        and later.account.check_run == earlier.account.check_run
    }
    return frozenset(
        check.id for check in run.checks if check.url in pages and check.name in required
    )


def _uploads_of(check: Check, theirs: Sequence[Upload]) -> tuple[Upload, ...]:
    """Return the uploads of the job that a check shows; if none are, those in its name.

    A check that shows the job's own page has the job's proof. One that shows the build may be of
    any of its jobs, so its name decides and the build is proved alone. The others prove nothing,
    and are only named as a reason.
    """
    own = tuple(each for each in theirs if each.account.check_run == check.url)
    if own:
        return own
    called = [each for each in theirs if jobs.is_called(check.name, each.job)]
    of_build = tuple(_proved(each, Proof.RUN) for each in called if each.run_id == check.url)
    return of_build or tuple(_proved(each, Proof.NONE) for each in called)


def _proved(upload: Upload, proof: Proof) -> Upload:
    return replace(upload, account=replace(upload.account, proof=proof))


def _job(check: Check) -> CiJob:
    return CiJob(check.id, check.name, "", "", CheckOutcome.FAILED, 0, None, None)
