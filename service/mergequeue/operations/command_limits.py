"""Limit how many commands one person, and one pull request, may send."""

from datetime import datetime, timedelta

from cachetools import LRUCache

from service.limits import EventLimit


class CommandLimits:
    """Limits of the commands that people send (docs/design/comments.md 3).

    Ten a minute each, 30 an hour for one pull request.
    """

    KEYS_MAX = 10_000

    def __init__(self) -> None:
        self._people = EventLimit(10, timedelta(minutes=1))
        self._pull_requests = EventLimit(30, timedelta(hours=1))
        self._refused: LRUCache[str, datetime] = LRUCache(self.KEYS_MAX)
        self._denied: LRUCache[str, bool] = LRUCache(self.KEYS_MAX)

    def until(self, person: str, pull: str, at: datetime) -> datetime | None:
        """Count one command of a time; if it is one too many, return when the next is accepted."""
        waits = (self._people.count(person, at), self._pull_requests.count(pull, at))
        return max((at for at in waits if at is not None), default=None)

    def is_first_denial(self, person: str) -> bool:
        """Return whether this person has had no refusal in words on this pull request yet."""
        if person in self._denied:
            return False
        self._denied[person] = True
        return True

    def is_first_refusal(self, person: str, pull: str, at: datetime, until: datetime) -> bool:
        """Return whether this person was not asked yet, on this pull request, to wait.

        `at` is the time of this command, `until` when the next is accepted. A command after that
        time belongs to another flood.
        """
        key = f"{person} {pull}"
        told = self._refused.get(key)
        if told is not None and at < told:
            return False
        self._refused[key] = until
        return True
