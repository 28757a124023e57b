"""Artifacts of the provider's CI that were looked at: each is read once (FLAKY.md 2.9)."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import BindParameter, Connection, bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.testhealth.store.cases import ASKED_AT_ONCE, Place
from service.testhealth.store.tables_evidence import ArtifactRow

artifacts = ArtifactRow.__table__

_IDS: BindParameter[str] = bindparam("of_ids", expanding=True)

SELECT_SEEN = select(artifacts.c.id).where(
    artifacts.c.repository_id == bindparam("of_repository"), artifacts.c.id.in_(_IDS)
)
SELECT_UPLOADS = select(artifacts.c.upload).where(
    artifacts.c.repository_id == bindparam("of_repository"), artifacts.c.upload.in_(_IDS)
)
NOTE = (
    upsert(artifacts)
    .on_conflict_do_nothing(index_elements=["repository_id", "id"])
    .returning(artifacts.c.id)
)


def seen(session: Connection, repository_id: int, ids: Iterable[str]) -> frozenset[str]:
    """Which of them were looked at."""
    asked = sorted(set(ids))
    found: set[str] = set()
    for first in range(0, len(asked), ASKED_AT_ONCE):
        told = {"of_repository": repository_id, "of_ids": asked[first : first + ASKED_AT_ONCE]}
        found.update(session.execute(SELECT_SEEN, told).scalars())
    return frozenset(found)


def uploads_among(session: Connection, repository_id: int, ids: Iterable[str]) -> set[str]:
    """Which of these uploads, a few, an artifact became or repeated."""
    told = {"of_repository": repository_id, "of_ids": sorted(ids)}
    return set(session.execute(SELECT_UPLOADS, told).scalars())


def note(session: Connection, place: Place, artifact_id: str, upload_id: str, at: datetime) -> bool:
    """It was looked at, and this is its upload; False when that had been said before."""
    row = {
        "org_id": place.org_id,
        "repository_id": place.repository_id,
        "id": artifact_id,
        "upload": upload_id,
        "at": at,
    }
    return session.execute(NOTE, row).first() is not None
