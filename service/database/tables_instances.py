"""Processes that serve this database."""

from datetime import datetime

from sqlmodel import Field

from service.database.tables_base import Row
from service.database.types import Utc


class InstanceRow(Row, table=True):
    """An instance and its last heartbeat; deleted when it stops or is gone.

    `fingerprint` is a digest of the settings that all instances must share.
    """

    __tablename__ = "instance"

    id: str = Field(primary_key=True)
    version: str
    fingerprint: str
    started_at: datetime = Field(sa_type=Utc)
    heartbeat: datetime = Field(sa_type=Utc)
