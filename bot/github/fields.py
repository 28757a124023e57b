"""Typed reading of decoded JSON: each look says what it expects and names what is wrong."""

from datetime import UTC, datetime


class Unreadable(ValueError):
    """A field we need is missing or of another kind; the text names its path, never its value."""


class Fields:
    """One JSON object. Unknown fields are ignored; `null` counts as missing."""

    __slots__ = ("_members", "_path")

    def __init__(self, value: object, path: str = "") -> None:
        if not isinstance(value, dict):
            raise Unreadable(f"{path or 'answer'}: not an object")
        self._members: dict[str, object] = value
        self._path = path

    def text(self, name: str) -> str:
        """A string that must be there."""
        found = self.text_or(name, None)
        if found is None:
            raise self._missing(name)
        return found

    def text_or(self, name: str, default: str | None) -> str | None:
        """A string, or the default when it is missing."""
        found = self._members.get(name)
        if found is None:
            return default
        if not isinstance(found, str):
            raise self._wrong(name, "a text")
        return found

    def words(self, name: str) -> str:
        """A string, empty when it is missing."""
        return self.text_or(name, "") or ""

    def id(self, name: str) -> str:
        """An id, which may arrive as number or text (GITHUB.md 2.2)."""
        found = self.id_or_none(name)
        if found is None:
            raise self._missing(name)
        return found

    def id_or_none(self, name: str) -> str | None:
        """An id, None when it is missing."""
        found = self._members.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | str):
            raise self._wrong(name, "an id")
        return str(found)

    def number(self, name: str) -> int:
        """A whole number, also as digits in a text."""
        found = self.id(name)
        if not found.lstrip("-").isdecimal():
            raise self._wrong(name, "a number")
        return int(found)

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        found = self._members.get(name)
        return found if isinstance(found, bool) else default

    def inner(self, name: str) -> "Fields":
        """An object that must be there."""
        found = self.inner_or_none(name)
        if found is None:
            raise self._missing(name)
        return found

    def inner_or_none(self, name: str) -> "Fields | None":
        """An object, None when it is missing."""
        found = self._members.get(name)
        return None if found is None else Fields(found, self._at(name))

    def each(self, name: str) -> "tuple[Fields, ...]":
        """The objects of a list, empty when it is missing; `null` members are left out."""
        return tuple(
            Fields(member, f"{self._at(name)}[{place}]")
            for place, member in enumerate(self.members(name))
            if member is not None
        )

    def members(self, name: str) -> list[object]:
        """A list as it stands, empty when it is missing."""
        found = self._members.get(name)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self._wrong(name, "a list")
        return found

    def moment(self, name: str) -> datetime:
        """An instant that must be there."""
        found = self.moment_or_none(name)
        if found is None:
            raise self._missing(name)
        return found

    def moment_or_none(self, name: str) -> datetime | None:
        """An instant in UTC, None when it is missing."""
        found = self.text_or(name, None)
        if found is None:
            return None
        try:
            moment = datetime.fromisoformat(found)
        except ValueError as failure:
            raise self._wrong(name, "an instant") from failure
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _missing(self, name: str) -> Unreadable:
        return Unreadable(f"{self._at(name)}: missing")

    def _wrong(self, name: str, wanted: str) -> Unreadable:
        return Unreadable(f"{self._at(name)}: not {wanted}")
