"""Store what was answered to requests that may be sent again."""

from datetime import datetime

from sqlalchemy import LargeBinary
from sqlmodel import Field

from service.database.tables_base import Row
from service.database.types import Id, Utc


class IdempotencyRow(Row, table=True):
    """One `Idempotency-Key` of a token at an endpoint, and the sealed answer once there is one.

    `claim` is the request that works on it; until `claimed_until` nobody else does.
    """

    __tablename__ = "idempotency"

    token_id: str = Field(primary_key=True)
    path: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    org_id: int = Field(sa_type=Id)
    digest: bytes = Field(sa_type=LargeBinary)
    claim: str
    claimed_until: datetime = Field(sa_type=Utc)
    at: datetime = Field(index=True, sa_type=Utc)
    status: int | None
    content_type: str | None
    body: bytes | None = Field(sa_type=LargeBinary)
