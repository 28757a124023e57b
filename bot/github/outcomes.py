"""The table of GitHub's words for reports and their outcomes.

No other module contains those words, and this one decides no verdict.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from service import check_reports
from service.provider.ci import CiTrigger
from service.vocabulary import Check, CheckKind, CheckOutcome

COMPLETED = "completed"
SKIPPED = "skipped"

# A check run that is not completed, by `status`.
RUN_STATUSES: Mapping[str, CheckOutcome] = {
    "queued": CheckOutcome.RUNNING,
    "in_progress": CheckOutcome.RUNNING,
    "waiting": CheckOutcome.RUNNING,
    "requested": CheckOutcome.RUNNING,
    "pending": CheckOutcome.RUNNING,
}

# A completed check run, by `conclusion`; those that depend on a setting are in `SWITCHED`.
CONCLUSIONS: Mapping[str, CheckOutcome] = {
    "success": CheckOutcome.PASSED,
    "failure": CheckOutcome.FAILED,
    "timed_out": CheckOutcome.FAILED,
    "startup_failure": CheckOutcome.FAILED,
    "cancelled": CheckOutcome.INTERRUPTED,
    "stale": CheckOutcome.INTERRUPTED,
    "action_required": CheckOutcome.BLOCKED,
}
SWITCHED = frozenset({"neutral", SKIPPED})

# A commit status, by `state`.
STATES: Mapping[str, CheckOutcome] = {
    "success": CheckOutcome.PASSED,
    "failure": CheckOutcome.FAILED,
    "error": CheckOutcome.FAILED,
    "pending": CheckOutcome.RUNNING,
    "expected": CheckOutcome.RUNNING,
}

# The event that started a run, and which code it then tests; other events test any code. One of
# them is `pull_request_target`, which checks out the base and shows its run on the head.
CI_TRIGGERS: Mapping[str, CiTrigger] = {
    "push": CiTrigger.HEAD,
    "schedule": CiTrigger.HEAD,
    "workflow_dispatch": CiTrigger.HEAD,
    "merge_group": CiTrigger.HEAD,
    "pull_request": CiTrigger.PULL_REQUEST,
}

WORST_FIRST = (
    CheckOutcome.FAILED,
    CheckOutcome.RUNNING,
    CheckOutcome.UNKNOWN,
    CheckOutcome.BLOCKED,
    CheckOutcome.INTERRUPTED,
    CheckOutcome.PASSED,
    # A name that ran in one suite and was skipped in another has run.
    CheckOutcome.SKIPPED,
)

# A skipped run beside one of these has not passed: the job before it did not succeed.
GUARDING = frozenset(
    {
        CheckOutcome.FAILED,
        CheckOutcome.INTERRUPTED,
        CheckOutcome.BLOCKED,
        CheckOutcome.RUNNING,
    }
)


def of_run(status: str, conclusion: str | None, *, skipped_pass: bool) -> CheckOutcome:
    """Return the outcome of one check run by itself; see `guarded` for its suite."""
    if status != COMPLETED:
        return RUN_STATUSES.get(status, CheckOutcome.UNKNOWN)
    if conclusion in SWITCHED:
        return CheckOutcome.SKIPPED if skipped_pass else CheckOutcome.FAILED
    return CONCLUSIONS.get(conclusion or "", CheckOutcome.UNKNOWN)


def of_state(state: str) -> CheckOutcome:
    """Return the outcome of one commit status."""
    return STATES.get(state, CheckOutcome.UNKNOWN)


def worst(outcomes: Iterable[CheckOutcome]) -> CheckOutcome | None:
    """Return the outcome that counts if several reports have one name, None without any."""
    return min(outcomes, key=WORST_FIRST.index, default=None)


def guarded(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the reports; a skipped run takes the worst outcome of its suite.

    A job that was skipped because the job before it failed would otherwise pass. Only the reports
    that count (`check_reports.py`) say something of the suite.
    """
    reports = tuple(checks)
    guarding: dict[tuple[str | None, str], set[CheckOutcome]] = defaultdict(set)
    for check in check_reports.counting(reports):
        if check.kind is CheckKind.SUITE_RUN and check.outcome in GUARDING:
            guarding[check.source_id, check.group].add(check.outcome)
    return tuple(_under(check, guarding[check.source_id, check.group]) for check in reports)


def _under(check: Check, beside: set[CheckOutcome]) -> Check:
    is_skipped = (
        check.kind is CheckKind.SUITE_RUN
        and check.raw == SKIPPED
        and check.outcome is CheckOutcome.SKIPPED
    )
    outcome = worst(beside) if is_skipped else None
    return check if outcome is None else replace(check, outcome=outcome)
