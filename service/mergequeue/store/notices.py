"""Our notices at the provider, recorded so that each is written once."""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.mergequeue.store.rows import queues
from service.mergequeue.store.tables_queues import NoticeRow


class Surface(StrEnum):
    """The places of our notices.

    COMMAND is the comment that submitted an entry, FINAL_COMMENT the one that says why it left,
    FOREIGN the answer to commands of another queue.
    QUEUE_LABEL is the newest change of the queue's label that was read, with the label as digest,
    empty once it was removed.
    """

    COMMENT = "comment"
    CHECK = "check"
    LABEL = "label"
    QUEUE_LABEL = "queue_label"
    COMMAND = "command"
    FINAL_COMMENT = "farewell"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class PostedNotice:
    """A notice as it was posted: its id there and the digest of its text."""

    provider_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class NoticeKey:
    """The place of a notice; `entry` only counts for checks, one for each submission."""

    queue_id: int
    pr: int
    surface: Surface
    entry: str = ""


notices = NoticeRow.__table__

EDITED = "edited"
"""Instead of a digest: a person or a landing changed it, so it is written again in any case."""

OF_PULL_REQUEST = frozenset({Surface.COMMENT, Surface.LABEL, Surface.QUEUE_LABEL, Surface.FOREIGN})
"""The notices that a pull request has once in a queue, whichever submission they are about."""

KEY = ("queue_id", "pr", "surface", "entry")
SELECT_RECORDED = select(notices.c.provider_id, notices.c.digest).where(
    *(notices.c[name] == bindparam(f"of_{name}") for name in KEY)
)
_UPSERT = upsert(notices).values(
    **{name: bindparam(f"of_{name}") for name in KEY},
    org_id=select(queues.c.org_id).where(queues.c.id == bindparam("of_queue_id")).scalar_subquery(),
    provider_id=bindparam("of_provider"),
    digest=bindparam("of_digest"),
)
UPSERT = _UPSERT.on_conflict_do_update(
    index_elements=list(KEY),
    set_={"provider_id": _UPSERT.excluded.provider_id, "digest": _UPSERT.excluded.digest},
)


def find(session: Connection, key: NoticeKey) -> PostedNotice | None:
    """Return the notice recorded under this key, None if there is none."""
    row = session.execute(SELECT_RECORDED, _key(key)).first()
    return None if row is None else PostedNotice(row.provider_id, row.digest)


def status_comment_key(session: Connection, queue_id: int, comment_id: str) -> NoticeKey | None:
    """Return the key of a status comment by its id at the provider; None if it is not ours."""
    statement = select(notices.c.pr).where(
        notices.c.queue_id == queue_id,
        notices.c.surface == Surface.COMMENT.value,
        notices.c.provider_id == comment_id,
    )
    number = session.execute(statement).scalar()
    return None if number is None else NoticeKey(queue_id, number, Surface.COMMENT, "")


def record(session: Connection, key: NoticeKey, standing: PostedNotice) -> None:
    """Record the notice that is now there."""
    stands = {"of_provider": standing.provider_id, "of_digest": standing.digest}
    session.execute(UPSERT, _key(key) | stands)


def _key(key: NoticeKey) -> dict[str, object]:
    """Return the key: one comment and labels for a pull request and queue, else by submission."""
    entry = "" if key.surface in OF_PULL_REQUEST else key.entry
    return {
        "of_queue_id": key.queue_id,
        "of_pr": key.pr,
        "of_surface": key.surface.value,
        "of_entry": entry,
    }
