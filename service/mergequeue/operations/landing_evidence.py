"""Signed evidence of landings: made in the transaction that records a landing, and read.

See docs/design/landing.md 13.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from service.accounts import access, signing_keys
from service.accounts.tenants import RepositoryRecord
from service.database import paging
from service.database.database import Tx
from service.database.page_tokens import Listing
from service.database.paging import Page, PageSelection
from service.errors import NotFound
from service.http.callers import Caller
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.outputs import Land
from service.mergequeue.landing_records import LandingRecord, LandingState, StoredLanding
from service.mergequeue.operations.landing_statement import (
    Circumstances,
    LandedStep,
    signed_later,
    statement_of,
)
from service.mergequeue.store import landing_evidence, runs
from service.mergequeue.store.landing_evidence import WAITS, SignedLanding
from service.runtime import Runtime
from service.vocabulary import QueueRef, RepoRef, Sha

SIGNED_AT_ONCE = 100
"""Evidence that one transaction signs of what has waited."""


@dataclass(frozen=True, slots=True)
class LandedNow:
    """The record of a landing: the landing, its rows after it, the settings in force."""

    queue: QueueRef
    action: Land
    rows: Sequence[LandingRecord]
    config: QueueConfig
    revision: int
    now: datetime


def keep(session: Tx, runtime: Runtime, landed: LandedNow, positions: frozenset[int]) -> None:
    """Sign and store the evidence of these positions, in the transaction that records them."""
    steps = [one for one in _landed_steps(landed) if one.step.position in positions]
    run = runs.run(session, landed.queue.id, landed.action.run)
    if run is None or not steps:
        return
    before = run.reused_from
    found = {
        member.entry: entry
        for member in run.members
        if (entry := runs.entry(session, landed.queue.id, member.entry)) is not None
    }
    known = Circumstances(
        queue=landed.queue,
        action=landed.action,
        run=run,
        reused=None if before is None else runs.run(session, landed.queue.id, before),
        entries=found,
        config=landed.config,
        revision=landed.revision,
        permit_until=max(
            (row.permit_until for row in landed.rows if row.permit_until), default=None
        ),
        version=runtime.options.version,
        now=landed.now,
    )
    for one in steps:
        payload = orjson.dumps(statement_of(one, known), option=orjson.OPT_SORT_KEYS)
        signed = signing_keys.sign(session, runtime, payload, landed.now)
        text, key_id = (payload.decode(), WAITS) if signed is None else signed
        kept = SignedLanding(one.sha, one.step.pr, text, key_id, landed.now)
        landing_evidence.add(session, landed.queue, kept)


async def sign_waiting(runtime: Runtime) -> None:
    """Sign evidence that an instance without the signing key has stored, the oldest first."""
    while await runtime.store.run(_sign_some, runtime, runtime.clock.now()):
        pass


def _sign_some(session: Tx, runtime: Runtime, now: datetime) -> bool:
    """Return whether some was signed."""
    some = landing_evidence.waiting(session, SIGNED_AT_ONCE)
    for each in some:
        signed = signing_keys.sign(session, runtime, signed_later(each.envelope, now), now)
        if signed is None:
            return False
        landing_evidence.put_signed(session, each.no, *signed)
    return bool(some)


def _landed_steps(landed: LandedNow) -> list[LandedStep]:
    """Return every position that has landed, each on the commit of the one before it."""
    rows = {row.position: row for row in landed.rows if row.state is LandingState.LANDED}
    base: Sha = landed.action.expected_tip.sha
    steps = []
    for step in landed.action.steps:
        row = rows.get(step.position)
        if row is None or row.landed_sha is None or row.landed_tree is None:
            break
        steps.append(LandedStep(step, row.landed_sha, row.landed_tree, base))
        base = row.landed_sha
    return steps


async def of_commit(
    runtime: Runtime, caller: Caller, ref: RepoRef, sha: str
) -> tuple[StoredLanding, ...]:
    """Return the evidence of a commit of a repository that the caller may see.

    Raises NotFound: repository_not_found, evidence_not_found.
    """
    repository = await access.find_repository(runtime, caller, ref)
    return await of_repository(runtime, repository, sha)


async def of_repository(
    runtime: Runtime, repository: RepositoryRecord, sha: str
) -> tuple[StoredLanding, ...]:
    """Return the evidence of a commit of this repository. Raises NotFound(evidence_not_found)."""
    found = await runtime.store.read(landing_evidence.of_commit, repository.id, sha.lower())
    if not found and await runtime.store.read(landing_evidence.is_waiting, repository.id, sha):
        raise NotFound(
            f"The evidence of commit {sha} of {repository.ref.slug} waits to be signed: the "
            f"instance that landed it cannot open the signing key. {signing_keys.REMEDY}",
            code="evidence_not_found",
        )
    if not found:
        raise NotFound(
            f"Commit {sha} of {repository.ref.slug} has no evidence: Headgate did not land it, or "
            "landed it before it kept any.",
            code="evidence_not_found",
        )
    return found


async def page(runtime: Runtime, queue: QueueRef, selection: PageSelection) -> Page[StoredLanding]:
    """Return the evidence of a queue, the oldest landing first.

    Raises Malformed(invalid_page_token, page_token_expired).
    """
    listing = Listing("listLandingEvidence", queue.org_id, queue.id)
    place = paging.place_of(runtime, listing, selection)
    after = int(place.key[0]) if place.key else 0
    rows = await runtime.store.read(landing_evidence.after, queue.id, after, place.limit)
    return place.page(rows, lambda row: (row.no,))
