"""Find a failed check's uploads: those of the CI job that it is (docs/design/evidence.md 2).

One that could be of another job counts for none: a failure must never be excused by the
results of others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from service.testhealth.reports import collecting

PLATFORM = " @ "
"""Behind it a job key names the platform and the matrix values (docs/design/reports.md 1)."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job of one attempt of a CI run; `runner` is empty when unknown."""

    id: str
    name: str
    workflow: str = ""
    runner: str = ""
    has_failed: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """An upload of that attempt: its job key, and the machine that it names, if any.

    `check_run` is that of the job which has proved that it sent the upload; empty: none has.
    """

    upload: str
    key: str
    machine: str = ""
    check_run: str = ""


Rule = Callable[[Job, Sent], bool]
"""A rule: whether an upload seems to be a job's."""


def uploads_of(job: Job, jobs: Sequence[Job], sent: Sequence[Sent]) -> tuple[str, ...]:
    """The uploads that are a job's, `jobs` being all of its attempt; in the order given.

    Those that the job has proved to be its own. Of those that no job has proved, by the first
    rule that gives any: its machine, its job key, an artifact called like it; and where it alone
    failed, whatever is of no other job.
    """
    own = tuple(each.upload for each in sent if each.check_run == job.id)
    guessed = _guessed(job, jobs, [each for each in sent if not each.check_run])
    return tuple(each.upload for each in sent if each.upload in {*own, *guessed})


def claimed_for(job: Job, jobs: Sequence[Job], sent: Sequence[Sent]) -> tuple[str, ...]:
    """Return the uploads that seem to be a job's and that another job has proved to be its own."""
    foreign = [each for each in sent if each.check_run not in ("", job.id)]
    return _guessed(job, jobs, [replace(each, check_run="") for each in foreign])


def _guessed(job: Job, jobs: Sequence[Job], sent: Sequence[Sent]) -> tuple[str, ...]:
    for rule in RULES:
        uploads = tuple(each.upload for each in sent if _is_only(job, jobs, each, rule))
        if uploads:
            return uploads
    if [each.id for each in jobs if each.has_failed] != [job.id]:
        return ()
    others = [each for each in jobs if each.id != job.id]
    return tuple(
        each.upload
        for each in sent
        if not any(rule(other, each) for other in others for rule in RULES)
    )


def is_of(job: Job, ran: Sequence[Job], sent: Sent) -> bool:
    """Return whether an upload is this job's and of no other of its attempt, by any rule."""
    return any(_is_only(job, ran, sent, rule) for rule in RULES)


def named_instead(ran: Sequence[Job], sent: Sent) -> Job | None:
    """Return the job that a job key names although another job has proved that it sent the upload.

    None: it names the sender, or no job of the attempt `ran`, or the sender is not among these.
    """
    sender = next((job for job in ran if job.id == sent.check_run), None)
    if sender is None or _is_named(sender, sent):
        return None
    return next((job for job in ran if _is_named(job, sent)), None)


def _is_named(job: Job, sent: Sent) -> bool:
    return _is_called(job, sent) or _is_artifact_of(job, sent)


def accounted(job: Job, ran: Sequence[Job], sent: Sequence[Sent]) -> frozenset[str]:
    """The job keys that need no upload of `job`: others reported under them in this CI run.

    Also the names of other jobs that did not fail: they may have had nothing to report.
    """
    quiet = (each for each in ran if each.id != job.id and not each.has_failed)
    names = {name for each in quiet for name in _names_of(each)}
    return frozenset(
        names | {each.key for each in sent} | {each.key.partition(PLATFORM)[0] for each in sent}
    )


def is_called(check: str, key: str) -> bool:
    """Return whether a job key is that of the job of this name, in whatever workflow."""
    plain = key.partition(PLATFORM)[0]
    return plain == check or plain.endswith(f" / {check}")


def _names_of(job: Job) -> tuple[str, ...]:
    own = (job.name, *(prefix + job.name for prefix in collecting.JOB_PREFIXES))
    return (*own, *(collecting.job_key(job.workflow, name) for name in own))


def _is_only(job: Job, jobs: Sequence[Job], sent: Sent, rule: Rule) -> bool:
    if sent.check_run:
        return sent.check_run == job.id
    return [each.id for each in jobs if rule(each, sent)] == [job.id]


def _ran_on(job: Job, sent: Sent) -> bool:
    return bool(sent.machine) and sent.machine == job.runner


def _is_called(job: Job, sent: Sent) -> bool:
    return _plain(sent) in (job.name, collecting.job_key(job.workflow, job.name))


def _is_artifact_of(job: Job, sent: Sent) -> bool:
    own = f"{job.workflow} / " if job.workflow else ""
    return collecting.names_job(_plain(sent).removeprefix(own), job.name)


def _plain(sent: Sent) -> str:
    return sent.key.partition(PLATFORM)[0]


RULES: tuple[Rule, ...] = (_ran_on, _is_called, _is_artifact_of)
"""The surest first."""
