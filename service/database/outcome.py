"""The result of a function for which another thread waits: its value, or what it raised."""

from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Outcome(Generic[T]):
    """Holds the exception raised inside `with outcome:`, for the caller that waits.

    The waiting caller gets that very exception. A thread that serves many callers must survive
    the failure of one.
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
