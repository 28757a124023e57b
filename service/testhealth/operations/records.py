"""Tests and uploads of a repository, found and described for lists, answers and messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.accounts import access, page_addresses
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import NotFound
from service.http.callers import Caller
from service.runtime import Options, Runtime
from service.testhealth.detector import quarantine, reasons
from service.testhealth.detector.quarantine import QuarantineSetting
from service.testhealth.settings import TestSettings
from service.testhealth.store import cases, figures, listings, uploads
from service.testhealth.store import quarantine as test_quarantine
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.uploads import Upload
from service.vocabulary import Override, RepoRef


@dataclass(frozen=True, slots=True)
class RepositoryContext:
    """A repository whose tests are asked for, and the settings that hold there at `now`."""

    repository: RepositoryRecord
    settings: TestSettings
    now: datetime
    sets: OutcomeSets


@dataclass(frozen=True, slots=True)
class RepositoryAddresses:
    """A repository whose tests are asked for, and where people see it and them."""

    repository: RepositoryRecord
    options: Options

    @property
    def html_url(self) -> str:
        """The repository at its provider."""
        return self.repository.url

    def address_of(self, test_id: str) -> str:
        """The page of one of its tests."""
        return page_addresses.test(self.options, self.repository.ref, test_id)


async def find_addresses(
    runtime: Runtime, caller: Caller, ref: RepoRef, org_slug: str | None
) -> RepositoryAddresses:
    """The repository, asked for under the caller's own organization.

    Raises NotFound: organization_not_found, repository_not_found.
    """
    if org_slug is not None and org_slug.lower() != caller.org_slug.lower():
        raise NotFound(
            f'There is no organization "{org_slug}" that this token belongs to; '
            "`GET /v1/tokens/self` names its own.",
            code="organization_not_found",
        )
    repository = await access.find_repository(runtime, caller, ref)
    return RepositoryAddresses(repository, runtime.options)


def context_of(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, now: datetime
) -> RepositoryContext:
    """The repository with its settings."""
    settings = test_quarantine.settings_of(session, repository.id)
    return RepositoryContext(repository, settings, now, runtime.store.caches.of(OutcomeSets))


def find_case(session: Tx, repository: RepositoryRecord, test_id: str) -> ListedCase:
    """A known test by its id, or one of its other ids. Raises NotFound(test_not_found)."""
    nos = cases.by_ids(session, repository.id, [test_id]).values()
    for case in listings.listed_cases(session, repository.id, list(nos)):
        return case
    raise NotFound(
        f"{repository.ref.slug} has no test {test_id}; the lists of tests name their ids.",
        code="test_not_found",
    )


def find_upload(session: Tx, repository: RepositoryRecord, upload_id: str) -> Upload:
    """An upload of the repository, a refused one too. Raises NotFound(upload_not_found)."""
    stored = uploads.by_id(session, upload_id)
    if stored is None or stored.place.repository_id != repository.id:
        raise NotFound(f"There is no upload {upload_id}.", code="upload_not_found")
    return stored.upload


def last_run(session: Tx, context: RepositoryContext, case: ListedCase) -> datetime:
    """Return when a test ran last; its first run if no later one is stored."""
    runs = figures.last_runs(session, context.sets, context.repository.id, [case.no])
    return runs.get(case.no, case.first_run_at)


def described(session: Tx, context: RepositoryContext, nos: Sequence[int]) -> list[ListedCase]:
    """Return tests by their numbers, with their reasons, and by what they are quarantined now."""
    listed = listings.listed_cases(session, context.repository.id, nos)
    unjudged = [case for case in listed if not case.reason]
    reasons = reasons_of_unjudged(session, context, unjudged) if unjudged else {}
    return [
        case._replace(reason=case.reason or reasons[case.no], setting=setting_of(context, case))
        for case in listed
    ]


def setting_of(context: RepositoryContext, case: ListedCase) -> QuarantineSetting | None:
    """By what a test is quarantined now, None when it is not."""
    return quarantine.setting_of(context.settings, override_of(context, case), case.status)


def override_of(context: RepositoryContext, case: ListedCase) -> Override:
    """Return what is said of its quarantine that has not expired."""
    return quarantine.in_force(case.override, case.expires_at, context.now)


def reasons_of_unjudged(
    session: Tx, context: RepositoryContext, unjudged: Sequence[ListedCase]
) -> dict[int, str]:
    """Return the number of each test that was never judged → the reason why it is healthy."""
    never_failed = [case.no for case in unjudged if case.last_failed_at is None]
    results = figures.results(session, context.sets, context.repository.id, never_failed)
    return {
        case.no: "Failed. It will be evaluated within a minute."
        if case.last_failed_at is not None
        else reasons.clean(results[case.no], case.first_run_at.date())
        for case in unjudged
    }
