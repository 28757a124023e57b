"""What a function came to when somebody else waits for it: its value, or what it raised."""

from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Outcome(Generic[T]):
    """Holds whatever is raised inside `with outcome:`, for the one who waits.

    Nothing is swallowed: the waiting caller gets the very error. A thread that serves many
    callers must outlive the trouble of one.
    """

    def __init__(self) -> None:
        self.value: T | None = None
        self.error: BaseException | None = None

    def __enter__(self) -> "Outcome[T]":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error
        return True
