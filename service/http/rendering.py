"""How answers of every part of the API write times and repositories."""

from collections.abc import Mapping
from datetime import UTC, datetime

from service.vocabulary import RepoRef

Json = Mapping[str, object]


def time(at: datetime) -> str:
    """`2026-03-02T14:02:19.000Z` (API.md 1.3)."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def time_or_null(at: datetime | None) -> str | None:
    """As `time`, null for none."""
    return None if at is None else time(at)


def repository(ref: RepoRef) -> Json:
    """A repository as requests name it (API.md 1.4)."""
    return {"host": ref.host, "owner": ref.owner, "name": ref.name}
