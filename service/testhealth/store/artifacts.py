"""Artifacts of the provider's CI that were read: each is read once (docs/design/reports.md)."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert as upsert

from service.database import bulk
from service.testhealth.store.cases import ASKED_AT_ONCE, Place, keys_of
from service.testhealth.store.tables_evidence import ArtifactRow

artifacts = ArtifactRow.__table__


def seen(session: Connection, repository_id: int, ids: Iterable[str]) -> frozenset[str]:
    """Return those of the artifacts that were read."""
    stored: set[str] = set()
    for some in bulk.parts(sorted(set(ids)), ASKED_AT_ONCE):
        statement = select(artifacts.c.id).where(
            artifacts.c.repository_id == repository_id, artifacts.c.id.in_(some)
        )
        stored.update(session.execute(statement).scalars())
    return frozenset(stored)


def uploads_among(session: Connection, repository_id: int, ids: Iterable[str]) -> set[str]:
    """Return those of a few uploads that an artifact became or repeated."""
    statement = select(artifacts.c.upload).where(
        artifacts.c.repository_id == repository_id, artifacts.c.upload.in_(sorted(ids))
    )
    return set(session.execute(statement).scalars())


def note(session: Connection, place: Place, artifact_id: str, upload_id: str, at: datetime) -> bool:
    """Note that an artifact was read, and its upload; return False if that was noted before."""
    row = {"id": artifact_id, "upload": upload_id, "at": at} | keys_of(place)
    statement = (
        upsert(artifacts)
        .on_conflict_do_nothing(index_elements=["repository_id", "id"])
        .returning(artifacts.c.id)
    )
    return session.execute(statement, row).first() is not None
