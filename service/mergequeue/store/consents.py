"""Consents of people to the pull requests of forks (docs/design/security.md 4).

A consent is for one head on one base, and for the sensitive files that it changed then. All of its
times are the provider's: they are compared with one another and never with our clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database.codec import JsonCodec
from service.mergequeue.store import pull_requests
from service.mergequeue.store.pull_requests import PullRequestHead
from service.mergequeue.store.tables_queues import ConsentRow
from service.provenance import ProviderTime
from service.provider.values import AccessLevel
from service.vocabulary import Actor

ACTOR: JsonCodec[Actor] = JsonCodec(Actor)
PATHS: JsonCodec[tuple[str, ...]] = JsonCodec(tuple[str, ...])

consents = ConsentRow.__table__

SELECT = select(consents).where(
    consents.c.repository_id == bindparam("of_repository"),
    consents.c.number == bindparam("of_number"),
    consents.c.head == bindparam("of_head"),
    consents.c.base == bindparam("of_base"),
)


@dataclass(frozen=True, slots=True)
class Consent:
    """A person lets in one head of a fork's pull request onto one base.

    `right` is the access level that the person had then. `sensitive` are the sensitive paths that
    the change had then, sorted. `at` is the provider's time of the comment or review, `source`
    says which it is.
    """

    head: PullRequestHead
    base: str
    actor: Actor
    right: AccessLevel
    sensitive: tuple[str, ...]
    at: ProviderTime
    source: str

    @property
    def needs(self) -> AccessLevel:
        """The access level without which this consent ends."""
        return right_for(self.sensitive)

    def covers(self, sensitive: Sequence[str]) -> bool:
        """Return whether it also holds for these sensitive paths of the same head and base."""
        return set(sensitive) <= set(self.sensitive) and self.right >= self.needs


def right_for(sensitive: Sequence[str]) -> AccessLevel:
    """Return the access level that lets in a fork's head with these sensitive paths."""
    return AccessLevel.MAINTAIN if sensitive else AccessLevel.WRITE


@dataclass(frozen=True, slots=True)
class ShownHead:
    """The provider's view of a pull request, and its time of the last change.

    `is_closed`: it was closed without a merge. `returned_after`: until then it may have had another
    head.
    """

    head: PullRequestHead
    base: str
    is_fork: bool
    is_closed: bool
    at: ProviderTime | None
    returned_after: ProviderTime | None = None


def give(session: Connection, consent: Consent) -> None:
    """Store a consent; a newer one for the same head and base replaces it."""
    key = _key(consent.head)
    values = {
        "right": int(consent.right),
        "sensitive": PATHS.encode(consent.sensitive),
        "actor": ACTOR.encode(consent.actor),
        "at": consent.at.at,
        "source": consent.source,
    }
    statement = upsert(consents).values(
        **key, base=consent.base, org_id=pull_requests.org_of(consent.head), **values
    )
    keys = ["repository_id", "number", "head", "base"]
    session.execute(statement.on_conflict_do_update(index_elements=keys, set_=values))


def find(session: Connection, head: PullRequestHead, base: str) -> Consent | None:
    """Return the consent for exactly this head on this base."""
    binds = {"of_repository": head.repository_id, "of_number": head.number}
    row = session.execute(SELECT, {**binds, "of_head": head.head, "of_base": base}).first()
    if row is None:
        return None
    return Consent(
        head=head,
        base=base,
        actor=ACTOR.decode(row.actor),
        right=AccessLevel(row.right),
        sensitive=PATHS.decode(row.sensitive),
        at=ProviderTime(row.at),
        source=row.source,
    )


def end(session: Connection, repository_id: int, number: int) -> None:
    """End every consent to a pull request."""
    session.execute(
        delete(consents).where(
            consents.c.repository_id == repository_id, consents.c.number == number
        )
    )


def note_shown(session: Connection, shown: ShownHead, now: datetime) -> None:
    """Remember the head, and end consents that what was shown is no longer.

    Only what is not older than the consent ends it: a late delivery shows the past.
    """
    pull_requests.remember_head(session, shown.head, shown.at, now, shown.returned_after)
    if not shown.is_fork:
        return
    where = [
        consents.c.repository_id == shown.head.repository_id,
        consents.c.number == shown.head.number,
    ]
    if not shown.is_closed:
        is_other = or_(consents.c.head != shown.head.head, consents.c.base != shown.base)
        where.append(is_other)
    if shown.at is not None:
        where.append(consents.c.at <= shown.at.at)
    session.execute(delete(consents).where(*where))


def _key(head: PullRequestHead) -> dict[str, object]:
    return {"repository_id": head.repository_id, "number": head.number, "head": head.head}
