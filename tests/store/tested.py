"""Questions about tests, and rows to ask them of, for `test_questions.py`."""

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import Connection

from service.flaky.identity import RepositoryKey
from service.store import (
    artifacts,
    test_cases,
    test_evidence,
    test_figures,
    test_listings,
    test_orders,
    test_quarantine,
    test_retention,
    test_states,
    uploads,
)
from service.store.test_cases import Place
from service.store.test_evidence import Day, SeenFailure
from service.store.test_listings import Span, UnhealthyRows
from service.store.test_orders import AsOf, Order
from service.store.test_parts import CutDays
from service.store.test_quarantine import StoredOverride
from service.store.test_quarantined import Moment, QuarantinedRows
from service.store.test_sets import OutcomeSets
from service.store.test_states import CaseState
from service.vocabulary import ActorKind, Health, Override
from tests.store.conftest import NOW

ROWS = {
    "test_repository": 1000,
    "test_case": 20_000,
    "alias": 5000,
    "test_state": 10_000,
    "test_state_event": 10_000,
    "test_override": 10_000,
    "ticket": 5000,
    "test_settings": 1000,
    "upload": 10_000,
    "artifact": 10_000,
    "outcome_set": 5000,
    "attempt": 20_000,
    "daily": 20_000,
    "noise": 5000,
    "failure_group": 5000,
    "failure_daily": 20_000,
    "pr_impact": 10_000,
}

GIVEN = {
    **{
        f"{table}.repository_id": "1 + i % 20"
        for table in ROWS
        if table not in ("test_repository", "test_settings")
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
    "test_settings.artifact_patterns": "'[]'",
    "test_settings.name_masks": "'[]'",
    "upload.is_eligible": "(i % 10 <> 0)",
    "upload.passed": "'lost-' || (i % 50)",
    "upload.run_id": "'run-' || i",
    "upload.revision": "i",
    "outcome_set.hash": "'hash-' || i",
    "attempt.no": "i % 5000",
    "attempt.outcome": "CASE i % 2 WHEN 0 THEN 'failed' ELSE 'passed' END",
    "attempt.failure": "'text-' || (i % 500)",
    "attempt.is_eligible": "(i % 10 <> 0)",
    "daily.day": "20513 - i % 400",
    "noise.day": "20513 - i / 20",
    "failure_daily.day": "20513 - i % 400",
    "pr_impact.is_counted": "(i % 2 = 0)",
}

PLACE = Place(7, 7)
KEY = RepositoryKey("text-7", "github.test/owner/name-7")
DAY = timedelta(days=1)
SPAN = Span(NOW - DAY, NOW)
LATER = Span(NOW - DAY / 2, NOW + DAY / 2)
AS_OF = AsOf(10_000, 0, None, None)
ORDER = Order(SPAN, 9_900, (), {})
LONG_AGO = NOW - 500 * DAY
UNHEALTHY = UnhealthyRows(7, Health.FLAKY)
QUARANTINED = QuarantinedRows(7, (Health.FLAKY, Health.BROKEN), NOW - 2 * DAY)
MOMENT = Moment(NOW - 3 * DAY, 7)
SAID = StoredOverride(6, Override.NEVER_QUARANTINE, "x", NOW, ActorKind.PERSON, "ann")
STATE = CaseState(6, Health.FLAKY, "x", NOW)
NOS = [6, 26, 46]

QUESTIONS: dict[str, Callable[[Connection], object]] = {
    "artifacts.seen": lambda s: artifacts.seen(s, 7, ["text-7", "other"]),
    "artifacts.note": lambda s: artifacts.note(s, PLACE, "new", "text-7", NOW),
    "uploads.of_run": lambda s: uploads.of_run(s, 7, "run-7", 1),
    "test_cases.shared_by": lambda s: test_cases.shared_by(s, 7),
    "test_cases.name_repository": lambda s: test_cases.name_repository(s, PLACE, KEY),
    "test_cases.take_numbers": lambda s: test_cases.take_numbers(s, 7, 5),
    "test_cases.note_upload": lambda s: test_cases.note_upload(s, 7, NOW),
    "test_cases.add_aliases": lambda s: test_cases.add_aliases(s, PLACE, {"new": 7}),
    "test_cases.by_ids": lambda s: test_cases.by_ids(s, 7, ["text-6", "text-7", "other"]),
    "test_states.state": lambda s: test_states.state(s, 7, 6),
    "test_states.put": lambda s: test_states.put(s, PLACE, STATE),
    "test_states.history": lambda s: test_states.history(s, 7, 6),
    "test_states.last_of_detector": lambda s: test_states.last_of_detector(s, 7, 6),
    "test_quarantine.settings_of": lambda s: test_quarantine.settings_of(s, 7),
    "test_quarantine.settings_to_change": lambda s: test_quarantine.settings_to_change(s, PLACE),
    "test_quarantine.since_of": lambda s: test_quarantine.since_of(s, 7),
    "test_quarantine.override_of": lambda s: test_quarantine.override_of(s, 7, 6),
    "test_quarantine.override_history": lambda s: test_quarantine.override_history(s, 7, 6),
    "test_quarantine.put_override": lambda s: test_quarantine.put_override(s, PLACE, SAID),
    "test_quarantine.expired": lambda s: test_quarantine.expired(s, NOW - 6 * DAY),
    "test_quarantine.put_ticket": lambda s: test_quarantine.put_ticket(s, PLACE, 6, "x", NOW),
    "test_quarantine.ticket_of": lambda s: test_quarantine.ticket_of(s, 7, 6),
    "test_quarantine.remove_ticket": lambda s: test_quarantine.remove_ticket(s, 7, 6),
    "test_listings.unhealthy, how many": UNHEALTHY.count,
    "test_listings.unhealthy, first": lambda s: UNHEALTHY.after(s, None, 100),
    "test_listings.unhealthy, after": lambda s: UNHEALTHY.after(s, (500, "text-9"), 100),
    "test_listings.unhealthy, before": lambda s: UNHEALTHY.before(s, (500, "text-9"), 100),
    "test_listings.unhealthy, last": lambda s: UNHEALTHY.before(s, None, 100),
    "test_orders.as_of": lambda s: test_orders.as_of(s, 7, SPAN),
    "test_orders.counted": lambda s: test_orders.counted(s, 7, SPAN, AS_OF),
    "test_orders.moved": lambda s: test_orders.moved(s, 7, ORDER, LATER, AS_OF),
    "test_listings.records": lambda s: test_listings.records(s, 7, NOS),
    "test_quarantined, how many": QUARANTINED.count,
    "test_quarantined, first": lambda s: QUARANTINED.after(s, None, 100),
    "test_quarantined, after": lambda s: QUARANTINED.after(s, MOMENT, 100),
    "test_quarantined, before": lambda s: QUARANTINED.before(s, MOMENT, 100),
    "test_quarantined, last": lambda s: QUARANTINED.before(s, None, 100),
    "test_figures.rates": lambda s: test_figures.rates(s, CutDays(OutcomeSets()), 7, NOS, NOW),
    "test_figures.common_failures": lambda s: test_figures.common_failures(s, 7, NOS, SPAN),
    "test_figures.pasts": lambda s: test_figures.pasts(s, 7, NOS),
    "test_evidence.put_set": lambda s: test_evidence.put_set(s, PLACE, NOS, NOW),
    "test_evidence.add_days": lambda s: test_evidence.add_days(s, PLACE, [Day(6, 20513)]),
    "test_evidence.note_failures": lambda s: test_evidence.note_failures(
        s, PLACE, [SeenFailure(6, "text-6", "x", "y", NOW)]
    ),
    "test_evidence.note_impact": lambda s: test_evidence.note_impact(s, PLACE, [(6, 7)], NOW, NOW),
    "test_evidence.expire_impacts": lambda s: test_evidence.expire_impacts(s, NOW),
    "test_retention.forget_impacts": lambda s: test_retention.forget_impacts(s, LONG_AGO),
    "test_retention, evidence": lambda s: [
        forget(s, LONG_AGO) for forget in test_retention.EVIDENCE
    ],
    "test_retention, history": lambda s: [forget(s, LONG_AGO) for forget in test_retention.HISTORY],
    "test_retention, tests": lambda s: test_retention.forget_days(s, NOW - 398 * DAY),
}
