"""Column types that both databases share."""

from datetime import UTC, datetime

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator, TypeEngine


class Utc(TypeDecorator[datetime]):
    """An instant, microsecond precise. Refuses a naive time, always gives back UTC.

    SQLite has no type for it: there it is text of fixed width, so that text order is time's.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime] | TypeEngine[str]:
        """Text on SQLite, `timestamptz` on PostgreSQL."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        """What the driver gets. Raises ValueError for a naive time."""
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
        """What the driver gave, in UTC."""
        return None if value is None else instant(value)


def instant(value: datetime | str) -> datetime:
    """A stored instant as the driver gives it, in UTC."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return value.astimezone(UTC)


class Json(Text):
    """JSON as text, written and read by `codec.py`; nobody filters by what is inside."""


Id = BigInteger().with_variant(Integer(), "sqlite")
"""A 64-bit id that the database counts up; SQLite does so for INTEGER alone."""
