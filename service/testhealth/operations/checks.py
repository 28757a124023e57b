"""Check whether tests are quarantined, for CI that decides what a failure means."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.http.callers import Caller
from service.runtime import Runtime
from service.testhealth.detector import quarantine
from service.testhealth.detector.quarantine import QuarantineSetting
from service.testhealth.operations import records
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.reports import identity
from service.testhealth.reports.identity import CaseKey, RepositoryKey
from service.testhealth.store import cases, listings
from service.testhealth.store.listings import ListedCase
from service.vocabulary import RepoRef


@dataclass(frozen=True, slots=True)
class AskedTest:
    """A test by its id, or by what a report says of it."""

    test_id: str | None = None
    name: str = ""
    parent: str = ""
    classname: str = ""
    file: str = ""
    variant: str = ""


@dataclass(frozen=True, slots=True)
class CheckedTest:
    """The answer about one test; `reason` None when it is not quarantined."""

    test_id: str
    known: bool = False
    quarantined: bool = False
    reason: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """Answers in the order of the questions."""

    is_enabled: bool
    at: datetime
    tests: tuple[CheckedTest, ...]


async def check(
    runtime: Runtime, caller: Caller, repository: RepositoryRecord, asked: Sequence[AskedTest]
) -> Checked:
    """Return whether each test is quarantined now; one that is not known is not."""
    now = runtime.clock.now()
    present = key_of(caller.org_slug, repository.ref)

    def read(session: Tx) -> Checked:
        context = records.context_of(session, runtime, repository, now)
        names = names_of(session, repository, present)
        meant = [ids_of(each, names, context) for each in asked]
        by_id = cases.by_ids(session, repository.id, [each for ids in meant for each in ids])
        matches = [next((by_id[each] for each in ids if each in by_id), None) for ids in meant]
        nos = sorted({no for no in matches if no is not None})
        listed = {each.no: each for each in listings.listed_cases(session, repository.id, nos)}
        tests = tuple(
            CheckedTest(ids[0]) if no is None else checked(context, listed[no])
            for ids, no in zip(meant, matches, strict=True)
        )
        return Checked(context.settings.quarantine_enabled, now, tests)

    return await runtime.store.read(read)


def key_of(org_slug: str, ref: RepoRef) -> RepositoryKey:
    """Return a repository as ids of tests name it (docs/design/reports.md 7)."""
    return RepositoryKey(org_slug, f"{ref.host}/{ref.slug}")


def names_of(
    session: Tx, repository: RepositoryRecord, present: RepositoryKey
) -> tuple[RepositoryKey, ...]:
    """The names under which the test may have been seen first, the present one in front."""
    stored = cases.shared_by(session, repository.id).names
    return (present, *(name for name in reversed(stored) if name != present))


def ids_of(
    asked: AskedTest, names: Sequence[RepositoryKey], context: RepositoryContext
) -> list[str]:
    """The ids that the test may have."""
    if asked.test_id is not None:
        return [asked.test_id]
    key = CaseKey(
        file=identity.normalized_file(asked.file),
        classname=asked.classname,
        parent=asked.parent,
        name=identity.masked_name(asked.name, context.settings.name_masks),
    )
    return [str(identity.id_of(name, key, asked.variant)) for name in names]


def checked(context: RepositoryContext, case: ListedCase) -> CheckedTest:
    """Return whether a known test is quarantined, and why."""
    setting = records.setting_of(context, case)
    if setting is None:
        return CheckedTest(case.id, known=True)
    if setting is QuarantineSetting.ALWAYS_QUARANTINE:
        why, until = case.override_reason, case.expires_at
    else:
        why, until = case.reason or case.status.value, None
    reason = quarantine.sentence(setting, why, until)
    return CheckedTest(case.id, known=True, quarantined=True, reason=reason, expires_at=until)
