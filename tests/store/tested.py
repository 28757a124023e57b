"""Questions about tests, and rows to ask them of, for `test_questions.py`."""

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Connection

from service.provenance import Proof
from service.testhealth.detector import ticketing
from service.testhealth.detector.machines import BadMachine
from service.testhealth.early_failures import EarlyFailure, EarlyStanding
from service.testhealth.filters import TestFilter, TestOrder, TimeOrder
from service.testhealth.repeats import PlanRounds
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.reports.results import Outcome
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store import (
    all_tests,
    artifacts,
    bad_machines,
    bitmaps,
    case_times,
    cases,
    code_owners,
    costs,
    day_counts,
    days,
    early_failures,
    failing,
    figures,
    flake_costs,
    history,
    listings,
    numbers,
    quarantine,
    queue_waits,
    repeats,
    retention,
    runs,
    sets,
    states,
    suspects,
    ticket_issues,
    uploads,
)
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store.all_tests import AllTests, QuarantineRule
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.case_times import Unsummed
from service.testhealth.store.cases import Place
from service.testhealth.store.code_owners import Claimed, OwnersText
from service.testhealth.store.day_counts import Daily, DaySums, FailureDaily, Part
from service.testhealth.store.days import OpenDay, Span
from service.testhealth.store.listings import UnhealthyTests
from service.testhealth.store.quarantine import StoredOverride
from service.testhealth.store.quarantined import QuarantinedTests
from service.testhealth.store.queue_waits import Wait
from service.testhealth.store.repeats import RepeatPlan
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.states import CaseState
from service.testhealth.store.uploads import Upload
from service.testhealth.suspects import CasePlace
from service.vocabulary import ActorKind, Health, Override, Sha
from tests.store.conftest import NOW

ROWS = {
    "test_repository": 1000,
    "test_case": 20_000,
    "alias": 5000,
    "test_state": 10_000,
    "test_state_event": 10_000,
    "test_override": 10_000,
    "ticket": 5000,
    "ticket_issue": 5000,
    "test_settings": 1000,
    "code_owners": 1000,
    "upload": 10_000,
    "artifact": 10_000,
    "bad_machine": 1000,
    "early_failure": 10_000,
    "outcome_set": 5000,
    "attempt": 20_000,
    "daily": 20_000,
    "upload_times": 10_000,
    "times_of_day": 10_000,
    "times_of_week": 20_000,
    "queue_wait": 10_000,
    "noise": 5000,
    "test_day": 5000,
    "failure_group": 5000,
    "failure_daily": 20_000,
    "pr_impact": 10_000,
    "repeat_plan": 10_000,
    "test_repeats": 20_000,
}

GIVEN = {
    **{
        f"{table}.repository_id": "1 + i % 20"
        for table in ROWS
        if table not in ("test_repository", "test_settings", "code_owners")
    },
    "test_repository.names": "'[]'",
    "test_case.owners": "'[]'",
    "test_case.is_known": "(i % 500 <> 0)",
    "test_case.status": "CASE i % 60 WHEN 6 THEN 'flaky' WHEN 26 THEN 'broken' ELSE 'healthy' END",
    "test_state.flag": "'NONE'",
    "test_state.value": "'flaky'",
    "test_state_event.actor_kind": "'system'",
    "test_state_event.kind": "'changed'",
    "test_state_event.previous": "'healthy'",
    "test_state_event.value": "'flaky'",
    "test_override.override": "'ALWAYS_QUARANTINE'",
    "test_override.actor_kind": "'person'",
    "test_override.is_open": "(i % 20 = 6)",
    "test_override.expires_at": "WHEN",
    "test_settings.auto_quarantine_statuses": "'[]'",
    "test_settings.sensitivity": "'normal'",
    "test_settings.quarantine_forgives": "'KNOWN_FAILURES'",
    "test_settings.excuse_proof": "'JOB'",
    "test_settings.test_failure_exit_codes": "'[]'",
    "test_settings.report_issuers": "'[]'",
    "test_settings.artifact_patterns": "'[]'",
    "test_settings.name_masks": "'[]'",
    "test_settings.ticket_issues": "(i % 100 = 7)",
    "ticket_issue.told": "'flaky'",
    "early_failure.run_id": "'run-' || i",
    "early_failure.proof": "'job'",
    "early_failure.standing": "'counts'",
    "upload.is_eligible": "(i % 10 <> 0)",
    "upload.kind": "'stable'",
    "repeat_plan.kind": "'stable'",
    "upload.passed": "'lost-' || (i % 50)",
    "upload.run_id": "'run-' || i",
    "outcome_set.hash": "'hash-' || i",
    "attempt.no": "i % 5000",
    "attempt.outcome": "CASE i % 2 WHEN 0 THEN 'failed' ELSE 'passed' END",
    "attempt.failure": "'text-' || (i % 500)",
    "attempt.is_eligible": "(i % 10 <> 0)",
    "test_day.day": "20513 - i / 20",
    "test_day.is_counted": "(i % 10 <> 0)",
    "test_day.is_summed": "(i % 100 <> 0)",
    "daily.cost_ms": "CASE i % 50 WHEN 7 THEN 100 ELSE 0 END",
    "times_of_day.day": "20513 - i % 400",
    "queue_wait.day": "20513 - i % 400",
    "repeat_plan.tests": "'[]'",
    "test_settings.flake_cost_alert_minutes": "CASE i % 100 WHEN 7 THEN 9 ELSE NULL END",
    "upload.is_noted": "(i % 100 <> 0)",
    "daily.day": "20513 - i % 400",
    "noise.day": "20513 - i / 20",
    "failure_daily.day": "20513 - i % 400",
    "pr_impact.is_counted": "(i % 2 = 0)",
}

PLACE = Place(7, 7)
KEY = RepositoryKey("text-7", "github.test/owner/name-7")
DAY = timedelta(days=1)
BAD_MACHINES = (BadMachine("runner 7", (6, 7), 2, NOW, NOW, 9, 9, 1, 90),)
SPAN = Span(NOW - DAY, NOW)
OPEN = OpenDay(PLACE, 20_503, 7)
SUM = Unsummed(PLACE, 20_503)
TIMED = Upload("new", "x", "pr", "x", "x", "unit", NOW, NOW)
LONG_AGO = NOW - 500 * DAY
UNHEALTHY = UnhealthyTests(7, Health.FLAKY)
ALL = AllTests(7, TestFilter(), QuarantineRule(False, ()), NOW)
BY_COST = AllTests(7, TestFilter(order=TestOrder.CI_TIME), QuarantineRule(False, ()), NOW)
FLAKY_BY_COST = AllTests(
    7, TestFilter((Health.FLAKY,), order=TestOrder.CI_TIME), QuarantineRule(False, ()), NOW
)
NAMED = AllTests(7, TestFilter(search="text-6"), QuarantineRule(False, ()), NOW)
QUARANTINED = QuarantinedTests(7, (Health.FLAKY, Health.BROKEN), NOW - 2 * DAY)
SAID = StoredOverride(6, Override.NEVER_QUARANTINE, "x", NOW, ActorKind.PERSON, "ann")
STATE = CaseState(6, Health.FLAKY, "x", NOW)
ISSUE = ticketing.new_issue(6, Health.FLAKY, NOW)
NOS = [6, 26, 46]
COUNTS = Part(0, 26, [Daily(6, 1, 1, 1, 0, 0, 0, NOW)], [FailureDaily(6, "text-6", 1, NOW)])


EARLY = EarlyFailure(
    *("new", "a" * 40, "run-7", 1, "8", "unit", "test_total", "Cart", "ui", "cart.py"),
    *(Proof.JOB, EarlyStanding.COUNTS, NOW),
)

PLAN = RepeatPlan("new", "text-7", UploadClass.STABLE, (), NOW, 1000)
ROUNDS = PlanRounds(6, "new", "text-7", NOW, "PFP", 1, 1, False, True)


def due(session: Connection) -> Claimed:
    """A repository whose owners are due."""
    claimed = code_owners.claim(session, NOW, NOW + DAY)
    assert claimed is not None
    return claimed


def read_at(session: Connection) -> datetime:
    """When the file of repository 7 was read."""
    code_owners.put(session, 7, OwnersText(), NOW)
    return NOW


QUESTIONS: dict[str, Callable[[Connection], object]] = {
    "artifacts.seen": lambda s: artifacts.seen(s, 7, ["text-7", "other"]),
    "artifacts.note": lambda s: artifacts.note(s, PLACE, "new", "text-7", NOW),
    "early_failures.put": lambda s: early_failures.put(s, PLACE, EARLY),
    "early_failures.by_key": lambda s: early_failures.by_key(s, 7, "text-6"),
    "early_failures.of_job": lambda s: early_failures.of_job(s, 7, "run-6", 1, "text-6"),
    "early_failures.count_of_run": lambda s: early_failures.count_of_run(s, 7, "run-6", 1),
    "early_failures.take_back": lambda s: early_failures.take_back(s, 7, ["text-6"], NOW),
    "early_failures.namesakes": lambda s: early_failures.namesakes(s, 7, "text-6"),
    "repeats.put_plan": lambda s: repeats.put_plan(s, PLACE, PLAN),
    "repeats.plan_of": lambda s: repeats.plan_of(s, 7, "text-6"),
    "repeats.has_plan": lambda s: repeats.has_plan(s, "text-6"),
    "repeats.spent": lambda s: repeats.spent(s, 7, NOW - DAY),
    "repeats.note_report": lambda s: repeats.note_report(s, PLACE, PLAN, [ROUNDS]),
    "repeats.repeats_of": lambda s: repeats.repeats_of(s, 7, NOS),
    "repeats.failing": lambda s: repeats.failing(s, 7),
    "repeats.remove": lambda s: repeats.remove(s, "text-6"),
    "repeats.history_of": lambda s: repeats.history_of(s, 7, NOS, NOW - DAY),
    "repeats.flaky": lambda s: repeats.flaky(s, 7),
    "repeats.failed_since": lambda s: repeats.failed_since(s, 7, NOW - DAY),
    "repeats.new_since": lambda s: repeats.new_since(s, 7, NOW - DAY),
    "repeats.seconds_of": lambda s: repeats.seconds_of(s, 7, NOS),
    "suspects.failed_for": lambda s: suspects.failed_for(s, 7, [6, 26], 10),
    "suspects.places_of": lambda s: suspects.places_of(s, 7),
    "suspects.healthy_at": lambda s: suspects.healthy_at(
        s, 7, [CasePlace("text-6", "text-6"), CasePlace("", "text-26")], 10
    ),
    "code_owners.path_of": lambda s: code_owners.path_of(s, 7),
    "code_owners.begin": lambda s: code_owners.begin(s, PLACE, NOW),
    "code_owners.look_sooner": lambda s: code_owners.look_sooner(s, 7, LONG_AGO),
    "code_owners.read_sooner": lambda s: code_owners.read_sooner(s, 7, LONG_AGO),
    "code_owners.claim, finish": lambda s: code_owners.finish(s, due(s), NOW + DAY),
    "code_owners.claim, none": lambda s: code_owners.claim(s, LONG_AGO, NOW),
    "code_owners.put": lambda s: code_owners.put(s, 7, OwnersText("CODEOWNERS", "x", "y"), NOW),
    "code_owners.cases_after": lambda s: code_owners.cases_after(s, 7, 26, 100),
    "code_owners.assign_owners": lambda s: code_owners.assign_owners(
        s, PLACE, read_at(s), {6: ("@a",)}, 6
    ),
    "days.open_day": lambda s: days.open_day(s, PLACE, NOW, NOW),
    "days.due": lambda s: days.due(s, NOW - 200 * DAY),
    "days.oldest_open": days.oldest_open,
    "days.cover": lambda s: days.cover(s, 7, SPAN),
    "days.lock": lambda s: days.lock(s, OPEN),
    "days.close": lambda s: days.close(s, OPEN, {6: 1}),
    "day_counts.read": lambda s: day_counts.read(s, OutcomeSets(), OPEN),
    "day_counts.write": lambda s: [
        day_counts.write(s, DaySums(each, (), ()), COUNTS) for each in days.due(s, NOW)[:2]
    ],
    "case_times.put": lambda s: case_times.put(s, PLACE, TIMED, b"x"),
    "case_times.read": lambda s: case_times.read(s, OutcomeSets(), OPEN),
    "case_times.write": lambda s: [
        case_times.write(s, each, {0: b"x"}) for each in days.due(s, NOW)[:2]
    ],
    "case_times.unsummed": case_times.unsummed,
    "case_times.parts_of": lambda s: case_times.parts_of(s, SUM),
    "case_times.days_of_part": lambda s: case_times.days_of_part(s, SUM, 0),
    "case_times.write_week": lambda s: case_times.write_week(s, SUM, 9, []),
    "case_times.versions": lambda s: case_times.versions(s, SUM),
    "case_times.note_summed": lambda s: case_times.note_summed(s, SUM, {20_503: 7}),
    "case_times.through_of": lambda s: case_times.through_of(s, 7),
    "case_times.slowest": lambda s: case_times.slowest(s, 7, TimeOrder.TOTAL, "", 50),
    "case_times.slowest, owned": lambda s: case_times.slowest(s, 7, TimeOrder.P95, "@a", 50),
    "case_times.totals": lambda s: case_times.totals(s, 7),
    "case_times.files": lambda s: case_times.files(s, 7),
    "queue_waits.write": lambda s: [
        queue_waits.write(s, each, [Wait(Sha("text-6"), DAY)]) for each in days.due(s, NOW)[:2]
    ],
    "bad_machines.of_repository": lambda s: bad_machines.of_repository(s, 7),
    "bad_machines.replace": lambda s: bad_machines.replace(s, PLACE, BAD_MACHINES),
    "flake_costs.known": lambda s: flake_costs.known(s, 7),
    "flake_costs.of_days": lambda s: flake_costs.of_days(s, 7, 20_430, 20_513),
    "flake_costs.queue_waits": lambda s: flake_costs.queue_waits(s, 7, 20_430, 20_513),
    "flake_costs.watched": lambda s: flake_costs.watched(s, 2900),
    "flake_costs.note_alert": lambda s: flake_costs.note_alert(s, 7, 2900),
    "cases.note_untrusted": lambda s: cases.note_untrusted(s, 7, NOS, NOW),
    "cases.owners_of": lambda s: cases.owners_of(s, 7, NOS),
    "uploads.unnoted": uploads.unnoted,
    "uploads.note_done": lambda s: uploads.note_done(s, "text-7"),
    "test_numbers.numbers_of": lambda s: numbers.numbers_of(s, 7, ["text-6", "x"], NOW),
    "test_cases.doubtful": lambda s: cases.doubtful(s, 7, NOS, NOW, NOW),
    "attempts.attempted": lambda s: list(test_attempts.attempted(s, 7, NOS, NOW - DAY)),
    "attempts.renew_impacts": lambda s: test_attempts.renew_impacts(s, PLACE, {(6, 7)}, NOW),
    "attempts.failed_in": lambda s: test_attempts.failed_in(s, ["text-6", "text-7"], 100),
    "attempts.failure_keys": lambda s: test_attempts.failure_keys(s, 7, NOS, SPAN),
    "uploads.contents": lambda s: uploads.contents(s, 7, NOW - DAY),
    "uploads.position_of": lambda s: uploads.position_of(s, 7, Sha("text-6")),
    "uploads.of_run": lambda s: uploads.of_run(s, 7, "run-7", 1),
    "uploads.of_test_run": lambda s: uploads.of_test_run(s, 7, Sha("text-6"), NOW - 30 * DAY),
    "uploads.of_heads": lambda s: uploads.of_heads(
        s, 7, [Sha("text-6"), Sha("text-26")], NOW - 30 * DAY
    ),
    "uploads.prs_of": lambda s: uploads.prs_of(s, 7, ["text-6", "text-26"]),
    "test_cases.shared_by": lambda s: cases.shared_by(s, 7),
    "test_cases.name_repository": lambda s: cases.name_repository(s, PLACE, KEY),
    "test_cases.take_numbers": lambda s: cases.take_numbers(s, 7, 5),
    "test_cases.note_evidence": lambda s: cases.note_evidence(s, 7, NOW),
    "test_cases.add_aliases": lambda s: cases.add_aliases(s, PLACE, {"new": 7}),
    "test_cases.by_ids": lambda s: cases.by_ids(s, 7, ["text-6", "text-7", "other"]),
    "test_cases.count": lambda s: cases.count(s, 7),
    "test_states.state": lambda s: states.state(s, 7, 6),
    "test_states.put": lambda s: states.put(s, PLACE, STATE),
    "test_states.history": lambda s: states.history(s, 7, 6),
    "test_states.recent": lambda s: states.recent(s, 7, 6, 50),
    "test_states.written_at": lambda s: states.written_at(s, 7, NOW),
    "test_quarantine.settings_of": lambda s: quarantine.settings_of(s, 7),
    "test_quarantine.settings_to_change": lambda s: quarantine.settings_to_change(s, PLACE),
    "test_quarantine.since_of": lambda s: quarantine.since_of(s, 7),
    "test_quarantine.override_of": lambda s: quarantine.override_of(s, 7, 6),
    "test_quarantine.override_history": lambda s: quarantine.override_history(s, 7, 6),
    "test_quarantine.recent_overrides": lambda s: quarantine.recent_overrides(s, 7, 6, 50),
    "test_quarantine.put_override": lambda s: quarantine.put_override(s, PLACE, SAID),
    "test_quarantine.expired": lambda s: quarantine.expired(s, NOW - 6 * DAY),
    "test_quarantine.put_ticket": lambda s: quarantine.put_ticket(s, PLACE, 6, "x", NOW),
    "test_quarantine.ticket_of": lambda s: quarantine.ticket_of(s, 7, 6),
    "test_quarantine.remove_ticket": lambda s: quarantine.remove_ticket(s, 7, 6),
    "test_all, how many": ALL.count,
    "test_all, first": lambda s: ALL.top(s, 50),
    "test_all, among": lambda s: ALL.among(s, NOS),
    "test_all, after": lambda s: ALL.after(s, 9, 50),
    "test_all, before": lambda s: ALL.before(s, 9, 50),
    "test_all, by cost": lambda s: BY_COST.top(s, 50),
    "test_all, flaky by cost": lambda s: FLAKY_BY_COST.top(s, 50),
    "test_all, flaky, after": lambda s: FLAKY_BY_COST.after(s, 9, 50),
    "test_all, of a search": lambda s: NAMED.narrowed(s).top(s, 50),
    "test_all, variants": lambda s: all_tests.variants(s, 7, 6),
    "test_all, worst": lambda s: all_tests.worst(s, [7, 8], 5),
    "costs.renew": lambda s: costs.renew(s, 7, NOS, NOW),
    "costs.expire": lambda s: costs.expire(s, NOW - 300 * DAY),
    "test_all, hits": lambda s: all_tests.hits(s, 7, 6),
    "test_history.days_of": lambda s: history.days_of(s, OutcomeSets(), 7, 6, NOW),
    "test_runs.newest": lambda s: runs.newest(s, OutcomeSets(), 7, [6], 60),
    "ticket_issues.places": ticket_issues.places,
    "ticket_issues.issue_of": lambda s: ticket_issues.issue_of(s, 7, 6),
    "ticket_issues.put": lambda s: ticket_issues.put(s, PLACE, ISSUE),
    "ticket_issues.forget": lambda s: ticket_issues.forget(s, 7, 6),
    "ticket_issues.asked_since": lambda s: ticket_issues.asked_since(s, 7, NOW - DAY),
    "ticket_issues.wanting": lambda s: ticket_issues.wanting(s, 7, ticketing.opening(NOW, 0)),
    "ticket_issues.due": lambda s: ticket_issues.due(s, 7, NOW - 2 * DAY),
    "ticket_issues.look_again": lambda s: ticket_issues.look_again(s, 7, NOW),
    "ticket_issues.put_off": lambda s: ticket_issues.put_off(s, 7, NOS, NOW),
    "test_listings.unhealthy, how many": UNHEALTHY.count,
    "test_listings.unhealthy, first": lambda s: UNHEALTHY.top(s, 100),
    "test_listings.unhealthy, among": lambda s: UNHEALTHY.among(s, NOS),
    "test_listings.unhealthy, after": lambda s: UNHEALTHY.after(s, 9, 100),
    "test_listings.unhealthy, before": lambda s: UNHEALTHY.before(s, 9, 100),
    "test_failing.counted": lambda s: failing.counted(s, 7, SPAN, 20_000),
    "test_listings.records": lambda s: listings.listed_cases(s, 7, NOS),
    "test_quarantined, how many": QUARANTINED.count,
    "test_quarantined, first": lambda s: QUARANTINED.top(s, 100),
    "test_quarantined, among": lambda s: QUARANTINED.among(s, NOS),
    "test_quarantined, after": lambda s: QUARANTINED.after(s, 9, 100),
    "test_quarantined, before": lambda s: QUARANTINED.before(s, 9, 100),
    "test_figures.rates": lambda s: figures.rates(s, OutcomeSets(), 7, NOS, NOW),
    "test_failing.common_failures": lambda s: failing.common_failures(s, 7, NOS, SPAN),
    "test_figures.results": lambda s: figures.results(s, OutcomeSets(), 7, NOS),
    "test_figures.last_runs": lambda s: figures.last_runs(s, OutcomeSets(), 7, NOS),
    "test_figures.run_after": lambda s: figures.run_after(s, OutcomeSets(), 7, NOS, NOW - DAY),
    "test_sets.put_set": lambda s: sets.put_set(s, PLACE, bitmaps.packed_set(NOS), NOW),
    "test_evidence.note_failures": lambda s: test_attempts.note_failures(
        s, PLACE, [StoredAttempt("x", 1, 1, NOW, Outcome.FAILED, "text-6", "x", "y")]
    ),
    "test_evidence.note_impact": lambda s: test_attempts.note_impact(s, PLACE, [(6, 7)], NOW, NOW),
    "test_evidence.expire_impacts": lambda s: test_attempts.expire_impacts(s, NOW),
    "test_retention.forget_impacts": lambda s: retention.forget_impacts(s, LONG_AGO),
    "test_retention, evidence": lambda s: [forget(s, LONG_AGO) for forget in retention.EVIDENCE],
    "test_retention, history": lambda s: [forget(s, LONG_AGO) for forget in retention.HISTORY],
    "test_retention, tests": lambda s: retention.forget_days(s, NOW - 200 * DAY),
}
