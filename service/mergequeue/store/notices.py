"""Our notices at the provider, recorded so that each is written once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, String, bindparam, case, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.mergequeue.store.rows import queues
from service.mergequeue.store.tables_queues import NoticeRow


class Surface(StrEnum):
    """The places of our notices.

    COMMAND is the comment that submitted an entry, FINAL_COMMENT the one that says why it left,
    FOREIGN the answer to commands of another queue. UNDONE is on a landed pull request the comment
    about one that would take it back, which `entry` names.
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
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class PostedNotice:
    """A notice as it was posted: its id there and the digest of its text."""

    provider_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class WrittenNotice:
    """A notice as it was posted, and what was recorded before: None if nothing was."""

    now: PostedNotice
    before: PostedNotice | None


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

UNREAD = ""
"""Instead of an id: a text may be there, and it is looked for before one is written."""

OF_PULL_REQUEST = frozenset({Surface.COMMENT, Surface.LABEL, Surface.QUEUE_LABEL, Surface.FOREIGN})
"""The notices that a pull request has once in a queue, whichever submission they are about."""

CONTINUED = frozenset({Surface.COMMENT, Surface.LABEL, Surface.FOREIGN})
"""The notices with which a queue goes on that is made again after its deletion."""

KEY = ("queue_id", "pr", "surface", "entry")
_own = queues.alias("own")
# The queues of one branch, one after the other, write the same comment.
SELECT_OF_SUBMISSION = (
    select(notices.c.queue_id, notices.c.surface, notices.c.provider_id, notices.c.digest)
    .join(queues, queues.c.id == notices.c.queue_id)
    .join(
        _own,
        (_own.c.repository_id == queues.c.repository_id) & (_own.c.branch == queues.c.branch),
    )
    .where(
        _own.c.id == bindparam("of_queue_id"),
        notices.c.pr == bindparam("of_pr"),
        notices.c.entry.in_(bindparam("of_entries", expanding=True)),
    )
    .order_by(notices.c.queue_id)
)
_UPSERT = upsert(notices).values(
    **{name: bindparam(f"of_{name}") for name in KEY},
    org_id=select(queues.c.org_id).where(queues.c.id == bindparam("of_queue_id")).scalar_subquery(),
    provider_id=bindparam("of_provider"),
    digest=bindparam("of_digest"),
)
_IS_EDITED_SINCE = (notices.c.digest == EDITED) & (bindparam("of_before", type_=String) != EDITED)
UPSERT = _UPSERT.on_conflict_do_update(
    index_elements=list(KEY),
    set_={
        "provider_id": _UPSERT.excluded.provider_id,
        "digest": case((_IS_EDITED_SINCE, EDITED), else_=_UPSERT.excluded.digest),
    },
)


def find(session: Connection, key: NoticeKey) -> PostedNotice | None:
    """Return the notice recorded under this key, None if there is none."""
    return _recorded(session, key.queue_id, key.pr, key.entry).get(key.surface.value)


def of_submission(
    session: Connection, queue_id: int, pr: int, entry_id: str
) -> dict[Surface, PostedNotice]:
    """Return all notices of a submission and of its pull request that are recorded, by surface."""
    recorded = _recorded(session, queue_id, pr, entry_id)
    return {Surface(surface): notice for surface, notice in recorded.items()}


def _recorded(
    session: Connection, queue_id: int, pr: int, entry_id: str
) -> dict[str, PostedNotice]:
    """Return the same by the names of their surfaces.

    A notice of a deleted queue of the same branch is that of its successor, which writes it again.
    """
    binds = {"of_queue_id": queue_id, "of_pr": pr, "of_entries": ["", entry_id]}
    own, before = {}, {}
    for row in session.execute(SELECT_OF_SUBMISSION, binds):
        if row.queue_id == queue_id:
            own[row.surface] = PostedNotice(row.provider_id, row.digest)
        elif row.surface in CONTINUED:
            before[row.surface] = PostedNotice(row.provider_id, EDITED)
    return before | own


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
    """Record the notice that is now there, whatever was recorded before."""
    _upsert(session, [(key, standing, EDITED)])


def record_all(session: Connection, written: Mapping[NoticeKey, WrittenNotice]) -> None:
    """Record notices that were written; one that was changed meanwhile is written again."""
    _upsert(
        session,
        [
            (key, each.now, "" if each.before is None else each.before.digest)
            for key, each in written.items()
        ],
    )


def _upsert(session: Connection, rows: Sequence[tuple[NoticeKey, PostedNotice, str]]) -> None:
    binds = [
        _key(key) | {"of_provider": now.provider_id, "of_digest": now.digest, "of_before": before}
        for key, now, before in rows
    ]
    if binds:
        session.execute(UPSERT, binds)


def _key(key: NoticeKey) -> dict[str, object]:
    """Return the key: one comment and labels for a pull request and queue, else by submission."""
    entry = "" if key.surface in OF_PULL_REQUEST else key.entry
    return {
        "of_queue_id": key.queue_id,
        "of_pr": key.pr,
        "of_surface": key.surface.value,
        "of_entry": entry,
    }
