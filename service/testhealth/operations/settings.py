"""Read and change the test settings of a repository."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from service.accounts import access, audit_log
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.errors import Invalid
from service.runtime import Runtime
from service.testhealth.operations import judge
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.settings import SettingValue, TestSettings
from service.testhealth.store import cases, quarantine, ticket_issues
from service.testhealth.store.cases import Place
from service.testhealth.store.index_cache import CachedIndex
from service.testhealth.store.quarantine import Since
from service.testhealth.store.sets import OutcomeSets
from service.vocabulary import Actor, RepoRef


async def read(runtime: Runtime, repository: RepositoryRecord) -> TestSettings:
    """Return the settings of the repository."""
    return await runtime.store.read(quarantine.settings_of, repository.id)


async def update(
    runtime: Runtime,
    repository: RepositoryRecord,
    changes: Mapping[str, SettingValue],
    actor: Actor,
) -> TestSettings:
    """Change the named settings and return all of them.

    Raises Invalid(issues_not_writable) for `ticket_issues` where issues cannot be written, and
    the provider's errors if it does not answer.
    """
    if changes.get("ticket_issues") and not (await read(runtime, repository)).ticket_issues:
        await _require_issues(runtime, repository.ref)
    subject = f"repository/{repository.id}"
    now = runtime.clock.now()
    row = audit_log.allowed(actor, repository.org_id, "test.update_settings", subject, now)
    here = repository.id
    after, kept = await judge.run_serialized(
        runtime, here, _update, runtime, repository, changes, row
    )
    if kept is not None:
        outbox.wake(runtime.wakeups)
    return after


async def _require_issues(runtime: Runtime, ref: RepoRef) -> None:
    provider = runtime.provider_of(ref.host)
    refused = await provider.no_tickets(ref)
    if refused is not None:
        raise Invalid(
            f"{refused.reason} Without that no issue of a test can be opened in {ref.slug}.",
            code="issues_not_writable",
            members={"settings": ["ticket_issues"]},
        )


def _update(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    changes: Mapping[str, SettingValue],
    row: AuditEntry,
) -> tuple[TestSettings, CachedIndex | None]:
    access.recheck(session, row.actor, row.at)
    place = Place(repository.org_id, repository.id)
    before = quarantine.settings_to_change(session, place)
    after = replace(before, **changes)  # type: ignore[arg-type]
    if after == before:
        return before, None
    since = quarantine.since_of(session, repository.id)
    since = Since(
        _on_since(since.quarantine_since, row.at, is_on=after.quarantine_enabled),
        _on_since(since.auto_since, row.at, is_on=after.auto_quarantine_enabled),
    )
    quarantine.put_settings(session, place, after, since)
    if after.ticket_issues and not before.ticket_issues:
        ticket_issues.look_again(session, repository.id, row.at)
    names = [name for name in changes if getattr(before, name) != getattr(after, name)]
    changed = {
        "before": {name: getattr(before, name) for name in names},
        "after": {name: getattr(after, name) for name in names},
    }
    audit.append(session, replace(row, data=changed))
    has_tests = bool(cases.shared_by(session, repository.id).names)
    if after.sensitivity is before.sensitivity or not has_tests:
        return after, None
    # Health is a function of evidence and settings: nobody waits for the next upload.
    tests = RepositoryTests(
        session,
        runtime,
        RepositoryContext(repository, after, row.at, runtime.store.caches.of(OutcomeSets)),
    )
    return after, judge.kept_of(tests, judge.judge(tests, ()))


def _on_since(before: datetime | None, now: datetime, *, is_on: bool) -> datetime | None:
    """Since when a switch is on."""
    return (before or now) if is_on else None
