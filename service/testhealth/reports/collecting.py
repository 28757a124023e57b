"""Classify an artifact of a CI run: whether it is read, its job key, class and code id.

Decisions about collected uploads (docs/design/reports.md 2, 10); pure, and without a word of a
provider. `testhealth/operations/collected.py` fetches.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service import globs
from service.testhealth.reports.results import ReportFile
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.reports.xml import NO_FORMAT

BETWEEN = re.compile(r"[^0-9A-Za-z]+")
FULL_SHA = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
SHORT_SHA_MIN = 7
ATTEMPT_WORDS = ("attempt", "try")
JOB_PREFIXES = ("junit-", "test-results-")


@dataclass(frozen=True, slots=True)
class CollectReports:
    """A request to read what an attempt of a CI run left; asked of the world like an action.

    `is_awaited`: a queue may be waiting for it.
    """

    run_id: str
    attempt: int
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """One attempt of a CI run, as far as its reports depend on it.

    `tests_head`: it tested its head as it stands; `tests_merge`: the head of a pull request,
    merged with its base; neither: nobody can tell which code its steps fetched.
    """

    run_id: str
    attempt: int
    head_sha: str
    head_branch: str
    of_fork: bool
    tests_head: bool
    tests_merge: bool


def is_wanted(name: str, patterns: Sequence[str]) -> bool:
    """Return whether an artifact of that name is read for reports; any letter case."""
    return globs.any_matches([pattern.lower() for pattern in patterns], name.lower())


def is_report(file: ReportFile) -> bool:
    """Return whether a file of an artifact was meant as a report, readable or not.

    See docs/design/reports.md 10.
    """
    return file.fault is None or file.fault.message != NO_FORMAT


def class_of(ran: Ran, stable_branches: Sequence[str], *, is_of_queue: bool) -> UploadClass:
    """The class of what the run left; `is_of_queue`: its head or branch is that of a test run.

    A run that may have tested anything is trusted like one of a fork: a workflow that takes
    over the reports of others would make them look like the default branch's own.
    """
    if ran.of_fork or not (ran.tests_head or ran.tests_merge):
        return UploadClass.UNTRUSTED
    if is_of_queue:
        return UploadClass.QUEUE
    if ran.tests_merge:
        return UploadClass.PR
    is_stable = globs.any_matches(stable_branches, ran.head_branch)
    return UploadClass.STABLE if is_stable else UploadClass.OTHER


def code_id(ran: Ran, tree: str | None) -> str:
    """Return what was tested: the tree if it is known, else the head, else this run alone.

    `tree` is that of one of our runs, or of the head that a push tested.
    """
    if tree is not None:
        return f"tree:{tree}"
    return f"sha:{ran.head_sha}" if ran.tests_head else f"run:{ran.run_id}"


def plain_name(artifact: str, ran: Ran) -> str:
    """The artifact's name without what differs from run to run; empty when nothing else is in it.

    Left out: the run's id and the attempt right behind it, `attempt` with its number, commit
    ids. A number by itself stays: the parts of a split job are told apart by it.
    """
    words = BETWEEN.split(artifact)
    gaps = [*BETWEEN.findall(artifact), ""]
    kept = "".join(
        word + gap
        for at, (word, gap) in enumerate(zip(words, gaps, strict=True))
        if not _is_passing(words, at, ran)
    )
    return kept if kept == artifact else kept.rstrip("".join(gaps))


def job_key(workflow: str, plain: str) -> str:
    """`workflow / artifact`, the same in every run and attempt; `plain` from `plain_name`."""
    return " / ".join(part for part in (workflow, plain) if part)


def _is_passing(words: list[str], at: int, ran: Ran) -> bool:
    """Return whether a word of an artifact's name differs from run to run."""
    word, before = words[at].lower(), words[at - 1].lower() if at else ""
    following = words[at + 1] if at + 1 < len(words) else ""
    attempt = str(ran.attempt)
    if word == ran.run_id or FULL_SHA.match(word):
        return True
    if len(word) >= SHORT_SHA_MIN and ran.head_sha.startswith(word):
        return True
    if word == attempt:
        return before in (ran.run_id, *ATTEMPT_WORDS)
    if word in ATTEMPT_WORDS:
        return following == attempt
    return word in (f"attempt{attempt}", f"try{attempt}")


def names_job(plain: str, job: str) -> bool:
    """Return whether an artifact is called like a job, so that its machine is the job's.

    See docs/design/evidence.md 2.
    """
    return plain in (job, *(prefix + job for prefix in JOB_PREFIXES))
