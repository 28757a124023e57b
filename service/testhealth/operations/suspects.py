"""List the tests that a CI job should run first, for the commit that it tests.

The pull requests are those of the test run on the commit, or the one whose head it is. They are in
the order in which the queue suspects them.
"""

import asyncio
from collections.abc import Sequence

from cachetools import LRUCache

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.testhealth import suspects
from service.testhealth.early_failures import CaseNames
from service.testhealth.operations import records
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.store import cases as test_cases
from service.testhealth.store import listings
from service.testhealth.store import suspects as stored
from service.testhealth.store.listings import ListedCase
from service.testhealth.suspects import SuspectedBecause, SuspectedTest
from service.vocabulary import Health, Sha

SUSPECTS_MAX = 200
"""Tests of one list."""

PRS_MAX = 20
"""Pull requests whose changes are examined, those first that are suspected most."""

ASKED_S = 2
"""Seconds in which the provider can list what the pull requests change."""

LISTS_MAX = 512


class SuspectLists(LRUCache[tuple[int, Sha, int], tuple[SuspectedTest, ...]]):
    """Lists by repository, commit and the revision of the repository's tests.

    Every job of a CI run asks for the same list.
    """

    def __init__(self) -> None:
        super().__init__(LISTS_MAX)


async def suspected(
    runtime: Runtime, repository: RepositoryRecord, sha: Sha
) -> tuple[SuspectedTest, ...]:
    """Return the tests to run first, the most suspected first; empty without a pull request."""
    revision = await runtime.store.read(test_cases.revision_of, repository.id)
    kept, key = runtime.memory.of(SuspectLists), (repository.id, sha, revision)
    if key in kept:
        return kept[key]
    prs = await runtime.links.of(QueueLinks).suspected_pull_requests(runtime, repository, sha)
    if not prs:
        return ()
    paths = await _changed_by(runtime, repository, prs[:PRS_MAX])
    found = await runtime.store.read(_found, runtime, repository, prs, paths or ())
    if paths is not None:
        kept[key] = found
    return found


async def _changed_by(
    runtime: Runtime, repository: RepositoryRecord, prs: Sequence[int]
) -> tuple[str, ...] | None:
    """Return the paths that pull requests change, in their order; None if the provider is late."""
    provider = runtime.providers.get(repository.ref.host)
    if provider is None:
        return ()
    try:
        async with asyncio.timeout(ASKED_S):
            changed = [await provider.changed_files(repository.ref, pr) for pr in prs]
    except (ProviderError, TimeoutError):
        return None
    return tuple(dict.fromkeys(path for each in changed for path in each.paths))


def _found(
    session: Tx,
    runtime: Runtime,
    repository: RepositoryRecord,
    prs: Sequence[int],
    paths: Sequence[str],
) -> tuple[SuspectedTest, ...]:
    context = records.context_of(session, runtime, repository, runtime.clock.now())
    because: dict[int, SuspectedBecause] = {}
    for pr in prs:
        failed = stored.failed_for(session, repository.id, [pr], SUSPECTS_MAX)
        because |= dict.fromkeys(failed, SuspectedBecause.FAILED_BEFORE)
    places = stored.places_of(session, repository.id) if paths else []
    by_place = suspects.places_by_changes(paths, places)
    near = stored.healthy_at(session, repository.id, list(by_place), SUSPECTS_MAX)
    order = list(SuspectedBecause)
    for place, no in sorted(near, key=lambda one: order.index(by_place[one[0]])):
        because.setdefault(no, by_place[place])
    listed = listings.listed_cases(session, repository.id, list(because))
    return tuple(
        SuspectedTest(case.id, _names_of(case), because[case.no])
        for case in listed
        if case.status is not Health.FLAKY and records.setting_of(context, case) is None
    )[:SUSPECTS_MAX]


def _names_of(case: ListedCase) -> CaseNames:
    return CaseNames(case.name, case.classname, case.parent, case.file)
