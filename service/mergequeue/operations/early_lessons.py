"""Lessons from the end of a required check about the parts of CI that failed before it.

Decides on values (docs/design/early-failures.md 5); `early_failures.py` reads and stores.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.early_rules import Ending, PartKind, Rule
from service.provider.ci import CiJob, CiProgress, FailedPart
from service.provider.ci_plans import CiPlan
from service.vocabulary import CheckOutcome


@dataclass(frozen=True, slots=True)
class Lesson:
    """A failed part, the rule that it is a case of, and how the required check ended.

    `early_s`: so long after the part the check ended; None: a time is missing.
    """

    rule: Rule
    part: FailedPart
    ending: Ending
    early_s: int | None = None


def rule_of(plan: CiPlan, file: str, required: str, part: FailedPart) -> Rule | None:
    """Return the rule by which a failed part dooms a required check; None: the file has none."""
    may = plan.may_doom(file, required, part)
    if may is None:
        return None
    kind = PartKind.TEST if part.test else PartKind.STEP if part.step else PartKind.JOB
    step = part.step if kind is PartKind.STEP else ""
    return Rule(file, may.version, required, may.job, kind, step)


def parts_of(job: CiJob) -> tuple[FailedPart, ...]:
    """Return what of a job has failed by now: the job itself if it has ended, and its steps."""
    whole = (FailedPart(job.id, job.name),) if job.outcome is CheckOutcome.FAILED else ()
    names = dict.fromkeys(step.name for step in job.failures)
    return (*whole, *(FailedPart(job.id, job.name, step=name) for name in names))


def lessons_of(
    plan: CiPlan, progress: CiProgress, required: str, check: str, *, has_passed: bool
) -> tuple[Lesson, ...]:
    """Return what the end of a required check teaches; `check` is the id of its check run.

    A pass refutes every part that had failed. A failure confirms the parts of one job alone: of
    several jobs it is not known which of them failed the check.
    """
    own = next((job for job in progress.jobs if job.id == check), None)
    if own is None:
        return ()
    known: list[tuple[Rule, FailedPart, CiJob]] = []
    for job in progress.jobs:
        for part in parts_of(job):
            rule = rule_of(plan, progress.file, required, part)
            if rule is not None:
                known.append((rule, part, job))
    if has_passed:
        return tuple(Lesson(rule, part, Ending.REFUTED) for rule, part, _ in known)
    failed = frozenset(job.name for job in progress.jobs if parts_of(job))
    roots = [one for one in known if plan.is_root(progress.file, one[2].name, failed)]
    return tuple(
        Lesson(rule, part, Ending.HELD, _early_s(own, part, job))
        for rule, part, job in roots
        if _is_alone(rule, roots)
    )


def _is_alone(rule: Rule, roots: Sequence[tuple[Rule, FailedPart, CiJob]]) -> bool:
    """Return whether no other job failed by itself; of a step, whether it is the only one."""
    jobs = {each.job for each, _, _ in roots}
    steps = {each.step for each, _, _ in roots if each.kind is PartKind.STEP}
    return len(jobs) == 1 and (rule.kind is not PartKind.STEP or len(steps) == 1)


def _early_s(own: CiJob, part: FailedPart, job: CiJob) -> int | None:
    ended: datetime | None = job.completed_at
    if part.step:
        ended = next((one.completed_at for one in job.failures if one.name == part.step), None)
    if ended is None or own.completed_at is None:
        return None
    return max(0, int((own.completed_at - ended).total_seconds()))
