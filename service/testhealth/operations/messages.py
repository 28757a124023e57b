"""Notifications about tests and uploads, stored in the transaction of their cause.

The bodies are described in docs/design/notifications.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from service.accounts import page_addresses
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.notifications import notifications
from service.notifications.messages import Message, common_fields, message_of, time_text
from service.notifications.store import subscribers
from service.runtime import Runtime
from service.testhealth.detector.machines import BadMachine
from service.testhealth.flake_costs import Week
from service.testhealth.operations import records
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.quarantine import StoredOverride
from service.testhealth.store.states import CaseState
from service.vocabulary import Health, Override, RepoRef, Sha

PROCESSED = "upload.processed"
FAILED_AFTER_LANDING = "upload.failed_after_landing"
EXCEEDED = "flake_costs.exceeded"
BAD_MACHINE = "test_machine.failing"
TESTS_MAX = 50
"""Failed tests that one message names."""


def tell(session: Tx, runtime: Runtime, repository: RepositoryRecord, message: Message) -> None:
    """Store a message for the endpoints that receive events of this repository."""
    listening = subscribers.enabled(session, repository.org_id, repository.id)
    notifications.enqueue(session, runtime, message, listening)


# Tests.


def tell_status(
    session: Tx, runtime: Runtime, context: RepositoryContext, after: CaseState, previous: Health
) -> None:
    """Send `test_case.status_changed`."""
    change = {
        "previous_status": previous.value,
        "current_status": {
            "value": after.value.value,
            "reason": after.reason,
            "timestamp": time_text(after.since),
        },
    }
    message = _of_test(
        session,
        runtime,
        context,
        after.no,
        ("status_changed", after.since, {"status_change": change}),
    )
    tell(session, runtime, context.repository, message)


def tell_override(
    session: Tx,
    runtime: Runtime,
    context: RepositoryContext,
    said: StoredOverride,
    previous: Override,
) -> None:
    """Send `test_case.quarantining_setting_changed`."""
    change = {
        "actor": {"kind": said.actor_kind.value, "login": said.actor_login or None},
        "reason": said.reason,
        "timestamp": time_text(said.at),
        "previous_quarantining_setting": previous.value,
        "updated_quarantining_setting": said.override.value,
        "expires_at": None if said.expires_at is None else time_text(said.expires_at),
    }
    fields = {"quarantine_setting_changed": change}
    message = _of_test(
        session, runtime, context, said.no, ("quarantining_setting_changed", said.at, fields)
    )
    tell(session, runtime, context.repository, message)


def tell_ticket(
    session: Tx, runtime: Runtime, context: RepositoryContext, no: int, ticket: str | None
) -> None:
    """Send `test_case.ticket_linked`; `ticket` None: the test has none any more."""
    fields = {"ticket": None if ticket is None else {"html_url": ticket}}
    message = _of_test(session, runtime, context, no, ("ticket_linked", context.now, fields))
    tell(session, runtime, context.repository, message)


def _of_test(
    session: Tx,
    runtime: Runtime,
    context: RepositoryContext,
    no: int,
    event: tuple[str, datetime, Mapping[str, object]],
) -> Message:
    """Return a message about a test as it is now."""
    word, at, fields = event
    (case,) = records.described(session, context, [no])
    repository, name = context.repository, f"test_case.{word}"
    slug = subscribers.organization_slug(session, repository.org_id)
    shown = {
        "id": case.id,
        "name": case.name,
        "parent": case.parent or None,
        "classname": case.classname or None,
        "file_path": case.file or None,
        "variant": case.variant,
        "codeowners": list(case.owners),
        "quarantined": case.quarantined,
        "html_url": page_addresses.test(runtime.options, repository.ref, case.id),
    }
    about = {"repository": _repository(repository.ref), "test_case": shown, **fields}
    return message_of(name, at, {**common_fields(name, slug, at), **about})


def _repository(ref: RepoRef) -> dict[str, object]:
    return {"host": ref.host, "owner": ref.owner, "name": ref.name}


def costly(
    session: Tx, repository: RepositoryRecord, week: Week, limit: int, at: datetime
) -> Message:
    """Return `flake_costs.exceeded`: flaky tests lost more CI time than `limit` minutes."""
    slug = subscribers.organization_slug(session, repository.org_id)
    costs = {
        "week_start": week.start.isoformat(),
        "ci_minutes": int(week.cost.ci_ms // 60_000),
        "limit_minutes": limit,
    }
    fields = {"repository": _repository(repository.ref), "flake_costs": costs}
    return message_of(EXCEEDED, at, {**common_fields(EXCEEDED, slug, at), **fields})


def bad_machine(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    found: tuple[BadMachine, Sequence[ListedCase]],
    at: datetime,
) -> Message:
    """Return `test_machine.failing`: a machine fails tests that pass elsewhere."""
    bad, tests = found
    slug = subscribers.organization_slug(session, repository.org_id)
    machine = {
        "name": bad.machine,
        "since": time_text(bad.since),
        "tests": bad.count,
        "examples": [
            {
                "name": case.name,
                "file_path": case.file or None,
                "html_url": page_addresses.test(runtime.options, repository.ref, case.id),
            }
            for case in tests
        ],
        "failing_runs": bad.failing,
        "runs": bad.runs,
        "failing_runs_elsewhere": bad.others_failing,
        "runs_elsewhere": bad.others_runs,
    }
    fields = {"repository": _repository(repository.ref), "machine": machine}
    return message_of(BAD_MACHINE, at, {**common_fields(BAD_MACHINE, slug, at), **fields})


# Uploads.


@dataclass(frozen=True, slots=True)
class UploadSummary:
    """An upload as messages show it; `tests` and `failed` count those of its reports."""

    organization: str
    repo: RepoRef
    id: str
    sha: Sha
    tests: int
    failed: int
    quarantined_failures: int
    html_url: str


def processed(upload: UploadSummary, at: datetime) -> Message:
    """Return `upload.processed`: the upload counts, and its tests are judged."""
    return message_of(PROCESSED, at, _of_upload(PROCESSED, upload, at))


def failed_after_landing(
    upload: UploadSummary, prs: Sequence[int], tests: Sequence[str], at: datetime
) -> Message:
    """Return `upload.failed_after_landing`: its failures would have kept `prs` from landing."""
    fields = _of_upload(FAILED_AFTER_LANDING, upload, at)
    fields |= {"pull_requests": list(prs), "failed_tests": list(tests[:TESTS_MAX])}
    return message_of(FAILED_AFTER_LANDING, at, fields)


def _of_upload(event: str, upload: UploadSummary, at: datetime) -> dict[str, object]:
    return {
        **common_fields(event, upload.organization, at),
        "repository": _repository(upload.repo),
        "upload": {
            "id": upload.id,
            "sha": upload.sha,
            "tests": upload.tests,
            "failed": upload.failed,
            "quarantined_failures": upload.quarantined_failures,
            "html_url": upload.html_url,
        },
    }
