"""Evidence for each required check: whether it ran, where, and by whose report.

One table for the comment, the check, pages, `land`, `explain`, the API, MCP and the signed evidence
of a landing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.reported import FailedBefore
from service.mergequeue.engine.states import FINAL, RunKind
from service.provenance import Proof
from service.vocabulary import CheckKind, CheckOutcome, Sha


class Ended(StrEnum):
    """The ways in which a required check counts.

    SKIPPED: its condition left it out, as on the pull request itself. OPTIONAL: it did not run,
    and a setting allows that. REUSED: it ran in `run` on an equal tree.
    """

    PASSED = "passed"
    REUSED = "reused"
    EXCUSED = "excused"
    SKIPPED = "skipped"
    OPTIONAL = "optional"
    FAILED = "failed"
    OPEN = "open"


class Place(StrEnum):
    """On which commit a check ran: a pull request's head, or the commit of a test branch."""

    HEAD = "head"
    TEST_BRANCH = "test_branch"


@dataclass(frozen=True, slots=True)
class Reporter:
    """The reporter of a check: its App (None for a person's status), check run and attempt."""

    kind: CheckKind
    app_id: str | None
    check_id: str
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class CheckedName:
    """One required check of a run, and what counts for it.

    `run` is the run that has the report, `sha` the commit it is about. `because` says in words why
    it was skipped, excused or optional, or failed without having run or before its end; names of
    others stand between backticks. `tests` are the names of excused tests, `proof` is what proves
    their report. `after` are jobs that had failed before a failed one began.
    """

    name: str
    ended: Ended
    place: Place
    run: str
    sha: Sha | None
    url: str = ""
    reporter: Reporter | None = None
    because: str = ""
    tests: tuple[str, ...] = ()
    proof: Proof | None = None
    after: FailedBefore | None = None


REVOKED = (
    "its command ended with 0 because all failures were quarantined, and another failure arrived"
    " later"
)
"""Why a check that passed counts as failed."""

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_ENDED = {
    CheckOutcome.PASSED: Ended.PASSED,
    CheckOutcome.SKIPPED: Ended.SKIPPED,
    CheckOutcome.FAILED: Ended.FAILED,
}


_BECAUSE = {
    Ended.SKIPPED: "its conditions left it out, on the pull request as well",
    Ended.OPTIONAL: "the setting optionalStatuses allows that",
}


def checked_of(
    run: Run, origin: Run | None = None, names: Mapping[str, str] = _NO_NAMES
) -> tuple[CheckedName, ...]:
    """Return the required checks of a run in their order, each with the report that counts.

    Empty for a run whose changes were in its base already: it needs none. `origin` is the run whose
    result this one took over; without it the report is not named. `names` maps the id of a test to
    its name; one that is not in it is named by its id.
    """
    if run.contained:
        return ()
    if run.reused_from is None:
        return tuple(_checked(run, one, names) for one in verdict.standings_of(run))
    earlier = {} if origin is None else {one.name: one for one in checked_of(origin)}
    return tuple(
        _reused(earlier.get(each.name), each.name, run.reused_from) for each in run.required
    )


def judging_run_of(entry: Entry) -> str | None:
    """Return the id of the run whose checks count for an entry; None before any.

    One that failed and was cleared by a later run has another run of its own.
    """
    of_end = entry.detail.run if entry.state in FINAL else None
    return entry.verified_by or of_end or entry.run or entry.detail.run


def _reused(earlier: CheckedName | None, name: str, origin: str) -> CheckedName:
    if earlier is None:
        return CheckedName(name, Ended.REUSED, Place.TEST_BRANCH, origin, sha=None)
    ended = Ended.REUSED if earlier.ended is Ended.PASSED else earlier.ended
    return replace(earlier, ended=ended)


def _checked(run: Run, one: verdict.Standing, names: Mapping[str, str]) -> CheckedName:
    name, check = one.required.name, one.check
    ended = Ended.OPEN if one.outcome is None else _ENDED.get(one.outcome, Ended.OPEN)
    tests: tuple[str, ...] = ()
    if ended is Ended.FAILED and name in run.excused:
        ended = Ended.EXCUSED
        failed = () if run.evidence is None else run.evidence.failed_tests.get(name, ())
        tests = tuple(names.get(each, each) for each in failed)
    if ended is Ended.SKIPPED and name in verdict.optional_of(run):
        ended = Ended.OPTIONAL
    return CheckedName(
        name=name,
        ended=ended,
        place=Place.HEAD if run.kind is RunKind.DIRECT else Place.TEST_BRANCH,
        run=run.id,
        sha=run.sha,
        url=one.named.url,
        reporter=None
        if check is None or one.doom is not None
        else Reporter(check.kind, check.source_id, check.id, check.attempt),
        because=_BECAUSE.get(ended) or _because(one),
        tests=tests,
        proof=_proof_of(run, name) if ended is Ended.EXCUSED else None,
        after=one.after if ended is Ended.FAILED else None,
    )


def _proof_of(run: Run, name: str) -> Proof:
    """Return what proves the report that excuses a failed check."""
    return Proof.NONE if run.evidence is None else run.evidence.proofs.get(name, Proof.NONE)


def _because(one: verdict.Standing) -> str:
    """Return why a failed check did not run, or is not what its report says; else nothing."""
    if one.outcome is not CheckOutcome.FAILED:
        return ""
    if one.is_revoked:
        return REVOKED
    if one.doom is not None:
        return f"it cannot pass any more, because {one.doom.part}"
    if one.named.because is None:
        return ""
    if not one.named.because:
        return "it was skipped or neutral, which counts as failed"
    return f"it was skipped because `{one.named.because}` failed"
