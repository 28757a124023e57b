"""Column types for both databases."""

from datetime import UTC, datetime

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator, TypeEngine


class Utc(TypeDecorator[datetime]):
    """An instant with microseconds. Refuses a naive time, always returns UTC.

    SQLite has no such type: it stores text of fixed width, which sorts by time.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime] | TypeEngine[str]:
        """Text on SQLite, `timestamptz` on PostgreSQL."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        """Return what the driver gets. Raises ValueError for a naive time."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone cannot be stored: {value.isoformat()}")
        if dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")

    def process_result_value(
        self,
        value: datetime | str | None,
        dialect: Dialect,  # noqa: ARG002
    ) -> datetime | None:
        """Return what the driver returned, in UTC."""
        return None if value is None else instant(value)


def instant(value: datetime | str) -> datetime:
    """Return a stored instant, as the driver returned it, in UTC."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return value.astimezone(UTC)


class Json(Text):
    """JSON as text, written and read by `codec.py`; no query filters by its content."""


Id = BigInteger().with_variant(Integer(), "sqlite")
"""A 64-bit id that the database increments; SQLite does so only for INTEGER."""
