"""The filter and the order of the lists of a repository's tests."""

from dataclasses import dataclass
from enum import StrEnum

from service.vocabulary import Health

NO_OWNER = "none"
"""The owner that stands for tests without one."""


class TestOrder(StrEnum):
    """The orders of tests: first those that hit most pull requests, or that lost most CI time."""

    __test__ = False

    PULL_REQUESTS = "pull_requests"
    CI_TIME = "ci_time"


class TimeOrder(StrEnum):
    """The orders of slow tests: by their time in all runs of a week, its median, or 95 in 100."""

    TOTAL = "total"
    MEDIAN = "median"
    P95 = "p95"


@dataclass(frozen=True, slots=True)
class TestFilter:
    """The filter of a list of tests, and its order; what is empty or None does not matter.

    `search` is a part of the name, file, class or suite, in any case of ASCII letters.
    """

    __test__ = False

    statuses: tuple[Health, ...] = ()
    search: str = ""
    owner: str = ""
    variant: str = ""
    quarantined: bool | None = None
    has_ticket: bool | None = None
    order: TestOrder = TestOrder.PULL_REQUESTS

    @property
    def is_narrow(self) -> bool:
        """Return whether anything but the status is filtered."""
        flags = (self.quarantined, self.has_ticket)
        return bool(self.search or self.owner or self.variant) or flags != (None, None)

    def words(self) -> tuple[str, ...]:
        """Return the filter as the page tokens of its list hold it."""
        flags = ("" if each is None else str(each) for each in (self.quarantined, self.has_ticket))
        return (",".join(self.statuses), self.search, self.owner, self.variant, *flags, self.order)
