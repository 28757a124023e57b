"""Each rule of the table that is in the code is planted with a fault, which a history shows."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from service import check_reports
from service.mergequeue.engine import inputs
from service.mergequeue.engine.applying import apply, reports
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import RequiredSet
from service.mergequeue.engine.state import target
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.operations import permits
from service.provenance import FactKind, Proof
from service.testhealth.detector import completeness, excuses
from service.testhealth.reports import jobs
from service.vocabulary import Check, RequiredName, RequiredSource
from tests.docs import fact_rules
from tests.hostile import file_faults, fork_faults, players
from tests.hostile.truth import Plot
from tests.hostile.world import Violation

Plant = Callable[[pytest.MonkeyPatch], None]

SEEDS = range(600)
"""Histories of which one must show each fault."""

_standing = verdict.standing
_newest = check_reports.counting
_why = excuses._why
_uploads_of = jobs.uploads_of


def _any_reporter(
    required: RequiredName, counting: tuple[Check, ...], *known: frozenset[str]
) -> verdict.Standing:
    return _standing(RequiredName(required.name), counting, *known)


def _latest_wins(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """One report for each name: the newest, whoever made it."""
    found = {check.name: check for check in sorted(_newest(checks), key=lambda one: int(one.id))}
    return tuple(found.values())


def _skips_count(patch: pytest.MonkeyPatch) -> None:
    everything = frozenset(("unit", "integration", "lint", "late"))
    patch.setattr(verdict, "skippable_in", lambda *_: everything)


def _any_commit(draft: Draft, one: inputs.ChecksReported) -> None:
    run = draft.runs.get(one.run)
    if run is not None and run.sha is not None:
        one = replace(one, sha=run.sha)
    reports.checks_reported(draft, one)


def _any_run(draft: Draft, one: inputs.ChecksReported) -> None:
    """Reports for a run that is not known count for another."""
    if one.run not in draft.runs and draft.runs:
        one = replace(one, run=next(iter(draft.runs)))
    reports.checks_reported(draft, one)


def _unreadable_is_old(draft: Draft, one: inputs.RequiredChanged) -> None:
    if one.error is None:
        reports.required_changed(draft, one)


def _nothing_more_is_required(draft: Draft, one: inputs.RequiredChanged) -> None:
    known = draft.queue.required
    if known is not None and len(draft.queue.entries) and one.error is None:
        old = {name.name for name in known.names}
        names = tuple(name for name in one.required.names if name.name in old)
        one = inputs.RequiredChanged(RequiredSet(names, RequiredSource.BRANCH_PROTECTION))
    reports.required_changed(draft, one)


def _push_ignored(draft: Draft, one: inputs.FactsChanged) -> None:
    entry = draft.entries.get(one.facts.pr)
    if entry is None or one.facts.head == entry.head:
        reports.facts_changed(draft, one)


def _reviews_ignored(draft: Draft, one: inputs.FactsChanged) -> None:
    reports.facts_changed(draft, replace(one, facts=replace(one.facts, blockers=())))


def _moves_ignored(draft: Draft, one: inputs.TargetMoved) -> None:
    if draft.queue.tip is None:
        target.moved(draft, one)


def _lists_of_jobs_ignored(job: jobs.Job, ran: object, sent: list[jobs.Sent]) -> tuple[str, ...]:
    return tuple(one.upload for one in sent)


def _setting(patch_of: object, name: str, new: object) -> Plant:
    return lambda patch: patch.setattr(patch_of, name, new)


def _applied(kind: type, applier: Callable) -> Plant:
    return lambda patch: patch.setitem(apply.APPLIERS, kind, applier)


FAULTS: Mapping[FactKind, Mapping[str, Plant]] = {
    FactKind.CHECK_RUN: {
        "another App's check run of the name counts": _setting(verdict, "standing", _any_reporter),
        "the newest report of a name counts": _setting(check_reports, "counting", _latest_wins),
        "reports of another commit count": _applied(inputs.ChecksReported, _any_commit),
    },
    FactKind.COMMIT_STATUS: {
        "a person's status counts": _setting(verdict, "standing", _any_reporter),
    },
    FactKind.SKIPPED_CHECK: {"every skip counts": _skips_count},
    FactKind.CI_JOB: {
        "a report is of the job that it names": _setting(
            jobs,
            "uploads_of",
            lambda job, ran, sent: _uploads_of(
                job, ran, [replace(one, check_run="") for one in sent]
            ),
        ),
    },
    FactKind.UPLOADED_REPORT: {
        "nothing has to prove a report": _setting(completeness, "_unproved", lambda *_: ()),
        "missing tests are no gap": _setting(completeness, "_unexpected", lambda *_: ()),
        "a second failed step is no matter": _setting(
            excuses,
            "_why",
            lambda check, relations, *, is_too_much: _why(
                replace(check, failed_steps=1), relations, is_too_much=is_too_much
            ),
        ),
    },
    FactKind.COLLECTED_REPORT: {
        "what is of the run is of the job": _setting(
            completeness, "STRENGTH", (Proof.NONE, Proof.TOKEN, Proof.JOB, Proof.RUN)
        )
    },
    FactKind.EXIT_CODE: {
        "every exit code means failed tests": _setting(
            completeness, "_is_of_tests", lambda *_: True
        )
    },
    FactKind.TEST_VERDICT: {
        "every failed test is quarantined": _setting(
            excuses, "relation_of", lambda *_: excuses.Relation.EXCUSED
        )
    },
    FactKind.REVIEW: {"a review changes nothing": _applied(inputs.FactsChanged, _reviews_ignored)},
    FactKind.PULL_REQUEST: {"a push changes nothing": _applied(inputs.FactsChanged, _push_ignored)},
    FactKind.REQUIRED_LIST: {
        "what cannot be read is as before": _applied(inputs.RequiredChanged, _unreadable_is_old),
        "what is required later is not awaited": _applied(
            inputs.RequiredChanged, _nothing_more_is_required
        ),
    },
    FactKind.TARGET_BRANCH: {
        "a move of the target changes nothing": _applied(inputs.TargetMoved, _moves_ignored)
    },
    FactKind.WEBHOOK: {
        "reports for others count here": _applied(inputs.ChecksReported, _any_run),
    },
    FactKind.REFERENCE: {
        "a landing that was wanted is still wanted": _setting(permits, "against", lambda *_: None)
    },
}

PLANTED: Mapping[FactKind, Mapping[str, Plant]] = {**FAULTS, **file_faults.FAULTS}
EVERY = [(kind, name) for kind, faults in PLANTED.items() for name in faults]

PLOTS: Mapping[FactKind, Plot] = {
    FactKind.OVERRIDE: Plot.QUARANTINE,
    FactKind.WORKFLOW_FILE: Plot.FILES,
    FactKind.REPOSITORY_FILE: Plot.FILES,
    FactKind.REQUIRED_LIST: Plot.FILES,
    FactKind.LANDED_COMMIT: Plot.PUSHES,
}
"""The histories that are about a kind, among which its faults are looked for."""


SHOWN: Mapping[str, int] = {
    "nothing has to prove a report": 443,
    "the newest report of a name counts": 66,
    "a report is of the job that it names": 66,
    "what is of the run is of the job": 66,
    "what cannot be read is as before": 37,
    "every token sets overrides": 42,
    "an expired override counts": 87,
    "a test that is never quarantined is flaky": 412,
    "a file with a fault says nothing": 144,
}
"""Seeds that showed a fault, which are tried before the others: searching them takes seconds."""


HELD_ELSEWHERE = {
    FactKind.FACTS_FOR_RULES,
    FactKind.DECLARED_REVERT,
    FactKind.LANDED_WORK,
    FactKind.FAILED_PART,
    FactKind.EARLY_FAILURE,
}
"""Kinds that no history plays: tests/mergequeue/test_rules_of_entry.py goes through courses of
facts and rules, tests/end_to_end/test_entry_rules.py through what people do,
tests/end_to_end/test_undone_work.py through what is taken back and declared,
tests/end_to_end/test_early_failures.py through parts of CI that failed, which let nothing land,
tests/end_to_end/test_live_tests.py through who may report a failed test."""


def shows(seed: int, plot: Plot) -> bool:
    """Whether a history of this plot shows that something is wrong."""
    try:
        players.play(seed, plot)
    except Violation:
        return True
    return False


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "name"), EVERY, ids=[name for _, name in EVERY])
def test_a_planted_fault_of_the_table_is_found(kind: FactKind, name: str) -> None:
    plot = PLOTS.get(kind, Plot.NONE)
    with pytest.MonkeyPatch.context() as patch:
        PLANTED[kind][name](patch)
        first = [SHOWN[name]] if name in SHOWN else []
        seed = next((seed for seed in (*first, *SEEDS) if shows(seed, plot)), None)
    assert seed is not None, f"no history of {len(SEEDS)} shows it"
    assert not shows(seed, plot)


def test_every_kind_of_the_table_has_a_planted_fault() -> None:
    lists = (FAULTS, file_faults.FAULTS, fork_faults.FAULTS)
    planted = [kind for faults in lists for kind, each in faults.items() if each]
    assert SHOWN.keys() <= {name for _, name in EVERY}
    of_the_table = {rule.kind for rule in fact_rules.RULES}
    assert sorted(planted) == sorted(of_the_table - HELD_ELSEWHERE)
