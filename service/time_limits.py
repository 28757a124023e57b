"""The times to wait for the database: briefly where somebody waits for an answer.

A database that hangs answers nobody, so each wait has a limit of ours. What was asked may still
happen after the limit: its outcome is unknown.
"""

from contextvars import ContextVar

ANSWER_S = 5.0
"""Per question, before a request or a delivery is answered: GitHub gives up after 10 s."""
WORK_S = 30.0
"""Per question of a background job."""

_limit_s: ContextVar[float] = ContextVar("database_limit_s", default=WORK_S)


def answer_soon() -> None:
    """Use the short limit from here on, in this task and those that it starts."""
    answer_within(ANSWER_S)


def answer_within(seconds: float) -> None:
    """Use a limit of one's own from here on."""
    _limit_s.set(seconds)


def limit_s() -> float:
    """Return the limit in seconds of this machine that holds here."""
    return _limit_s.get()
