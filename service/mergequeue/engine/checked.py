"""Evidence for each required check: whether it ran, where, and by whose report.

One table for the comment, the check, pages, `land`, `explain`, the API, MCP and the signed evidence
of a landing.
"""

from dataclasses import dataclass
from enum import StrEnum

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Run
from service.provenance import Proof
from service.vocabulary import CheckKind, CheckOutcome, Sha


class Ended(StrEnum):
    """How a required check counts.

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
    """What reported a check: its App (None for a person's status), check run and attempt."""

    kind: CheckKind
    app_id: str | None
    check_id: str
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class CheckedName:
    """One required check of a run, and what counts for it.

    `run` is the run that has the report, `sha` the commit it is about. `because` says in words why
    it was skipped, excused or optional. `tests` are the names of excused tests, `proof` is what
    proves their report.
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


_ENDED = {
    CheckOutcome.PASSED: Ended.PASSED,
    CheckOutcome.SKIPPED: Ended.SKIPPED,
    CheckOutcome.FAILED: Ended.FAILED,
}


def checked_of(run: Run) -> tuple[CheckedName, ...]:
    """Return the required checks of a run in their order, each with the report that counts."""
    return tuple(_checked(run, one) for one in verdict.standings_of(run))


def _checked(run: Run, one: verdict.Standing) -> CheckedName:
    ended = Ended.OPEN if one.outcome is None else _ENDED.get(one.outcome, Ended.OPEN)
    if ended is Ended.FAILED and one.required.name in run.excused:
        ended = Ended.EXCUSED
    check = one.check
    return CheckedName(
        name=one.required.name,
        ended=ended,
        place=Place.TEST_BRANCH,
        run=run.id,
        sha=run.sha,
        url="" if check is None else check.url,
        reporter=None
        if check is None
        else Reporter(check.kind, check.source_id, check.id, attempt=None),
        proof=_proof_of(run, one.required.name) if ended is Ended.EXCUSED else None,
    )


def _proof_of(run: Run, name: str) -> Proof:
    """Return what proves the report that excuses a failed check."""
    return Proof.NONE if run.evidence is None else run.evidence.proofs.get(name, Proof.NONE)
