"""Find an order of calls in which a sequential model gives their answers."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Operation = TypeVar("Operation")


@dataclass(frozen=True, slots=True)
class Call(Generic[Operation]):
    """What was asked and answered; `began` and `ended` are moments of one clock."""

    began: int
    ended: int
    operation: Operation


def order_of(
    calls: Sequence[Call[Operation]],
    start: State,
    after: Callable[[State, Operation], State | None],
) -> list[Call[Operation]] | None:
    """Return an order that explains the answers, None if there is none.

    `after` returns the state after an operation, None where the operation would have been
    answered otherwise. A call comes before those that began after its end.
    """
    chosen: list[tuple[int, State]] = []
    state, taken, first = start, 0, 0
    seen: set[tuple[int, State]] = {(taken, state)}
    while len(chosen) < len(calls):
        step = _next(calls, (state, taken, first), after, seen)
        if step is not None:
            index, following = step
            chosen.append((index, state))
            state, taken, first = following, taken | 1 << index, 0
            continue
        if not chosen:
            return None
        index, state = chosen.pop()
        taken, first = taken & ~(1 << index), index + 1
    return [calls[index] for index, _ in chosen]


def _next(
    calls: Sequence[Call[Operation]],
    place: tuple[State, int, int],
    after: Callable[[State, Operation], State | None],
    seen: set[tuple[int, State]],
) -> tuple[int, State] | None:
    """Return the next call that may come now, by its number, and the state after it.

    None if every one leads to what was seen before, or to no answer.
    """
    state, taken, first = place
    open_calls = [index for index in range(len(calls)) if not taken >> index & 1]
    soonest = min(calls[index].ended for index in open_calls)
    for index in open_calls:
        if index < first or calls[index].began > soonest:
            continue
        following = after(state, calls[index].operation)
        if following is None or (taken | 1 << index, following) in seen:
            continue
        seen.add((taken | 1 << index, following))
        return index, following
    return None
