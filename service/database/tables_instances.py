"""Processes that serve this database."""

from datetime import datetime

from sqlmodel import Field

from service.database.tables_base import Row
from service.database.types import Utc


class InstanceRow(Row, table=True):
    """A process and its last sign of life; gone once it has stopped, or was taken for dead.

    `fingerprint` stands for the settings that all of them must share.
    """

    __tablename__ = "instance"

    id: str = Field(primary_key=True)
    version: str
    fingerprint: str
    started_at: datetime = Field(sa_type=Utc)
    heartbeat: datetime = Field(sa_type=Utc)
