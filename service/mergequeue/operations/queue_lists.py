"""The queues of an organization or of one repository, a part at a time (API.md 5.2)."""

from service.accounts import access
from service.database import paging
from service.database.paging import Boundary, Listing, Part
from service.http.callers import Caller
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations.views import QueueRow
from service.mergequeue.store import listings
from service.mergequeue.store.listings import QueueFound
from service.runtime import Runtime
from service.vocabulary import RepoRef

BEGINNING = (0, "")


async def listed(
    runtime: Runtime, caller: Caller, ref: RepoRef | None, take: int, cursor: str | None
) -> Part[QueueRow]:
    """The queues that the caller may see, of one repository when it is named.

    By repository, in the order in which we learned of them, then by branch.
    Raises NotFound(repository_not_found), Malformed(invalid_page_token, page_token_expired).
    """
    within = caller.repositories
    place = None
    if ref is not None:
        place = (await access.find_repository(runtime, caller, ref)).id
        within = frozenset({place})
    now = runtime.clock.now()
    listing = Listing("listQueues", caller.org_id, place)
    boundary = paging.boundary_of(runtime.keys, listing, cursor, now)
    after = BEGINNING if boundary is None else (int(boundary.key[0]), str(boundary.key[1]))
    found = await runtime.store.read(listings.queues_after, caller.org_id, within, after, take + 1)
    rows = [(_row(each), Boundary((each.repository_id, each.branch))) for each in found]
    return paging.part_of(runtime.keys, listing, rows, take, now)


def _row(found: QueueFound) -> QueueRow:
    not_ready = found.counts.get(EntryState.NOT_READY, 0)
    return QueueRow(
        repo=found.repo,
        branch=found.branch,
        state=found.state,
        mode=found.mode,
        depth=sum(found.counts.values()) - not_ready,
        not_ready=not_ready,
        testing=found.counts.get(EntryState.TESTING, 0),
        revision=found.revision,
    )
