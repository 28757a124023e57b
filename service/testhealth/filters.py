"""Which tests of a repository are listed."""

from dataclasses import dataclass

from service.vocabulary import Health

NO_OWNER = "none"
"""The owner that stands for tests without one."""


@dataclass(frozen=True, slots=True)
class TestFilter:
    """Which tests are listed; what is empty or None does not matter.

    `search` is a part of the name, file, class or suite, in any case of ASCII letters.
    """

    __test__ = False

    statuses: tuple[Health, ...] = ()
    search: str = ""
    owner: str = ""
    variant: str = ""
    quarantined: bool | None = None
    has_ticket: bool | None = None

    def words(self) -> tuple[str, ...]:
        """Return the filter as the page tokens of its list hold it."""
        flags = ("" if each is None else str(each) for each in (self.quarantined, self.has_ticket))
        return (",".join(self.statuses), self.search, self.owner, self.variant, *flags)
