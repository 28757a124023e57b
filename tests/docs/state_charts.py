"""The page of state charts, written from the engine's tables of states and transitions."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from service.mergequeue.engine import states

State = TypeVar("State", bound=StrEnum)

INTRODUCTION = """\
# State charts

Written by `make docs` from the tables in `service/mergequeue/engine/states.py`. Edit the tables
and not this page. [The engine](engine.md) says what each state means. A step to the same state only
changes the reason.
"""

RUN_NOTE = """\
These transitions are allowed while an entry refers to the run. A retired run never changes.
"""


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()).rstrip("\n") + "\n"


def _lines() -> Iterator[str]:
    yield INTRODUCTION
    yield "## 1. Pull request\n"
    yield from chart(states.ENTRY_TRANSITIONS)
    yield "## 2. Test run\n"
    yield RUN_NOTE
    yield from chart(states.RUN_TRANSITIONS)
    yield "| Kind of run | Slots |\n|---|---|"
    for kind in states.RunKind:
        yield f"| `{kind.value}` | {_slots_of(kind)} |"
    yield "\n## 3. Queue\n"
    yield from chart(states.QUEUE_TRANSITIONS)
    yield "| State | Starts runs | Lands |\n|---|---|---|"
    for state in states.QueueState:
        starts = state is states.QueueState.RUNNING
        yield f"| `{state.value}` | {_said(starts)} | {_said(state in states.LANDS)} |"


def chart(transitions: Mapping[State, frozenset[State]]) -> Iterator[str]:
    """A Mermaid chart; an arrow that leaves every state is drawn once, from their common frame."""
    live = [state for state, targets in transitions.items() if targets]
    final = [state for state, targets in transitions.items() if not targets]
    shared = frozenset.intersection(*(transitions[state] for state in live)) & frozenset(final)
    yield "```mermaid\nstateDiagram-v2"
    if shared:
        yield '    state "not final" as live {'
    indent = "    " * (2 if shared else 1)
    for source in live:
        for target in _ordered(transitions, transitions[source] - shared - frozenset(final)):
            yield f"{indent}{source.name} --> {target.name}"
    if shared:
        yield "    }"
    for source in live:
        for target in _ordered(transitions, (transitions[source] & frozenset(final)) - shared):
            yield f"    {source.name} --> {target.name}"
    for target in _ordered(transitions, shared):
        yield f"    live --> {target.name}"
    for state in final:
        yield f"    {state.name} --> [*]"
    yield "```\n"


def _ordered(
    transitions: Mapping[State, frozenset[State]], targets: frozenset[State]
) -> list[State]:
    return [state for state in transitions if state in targets]


def _slots_of(kind: states.RunKind) -> str:
    if kind in states.PROBE_SLOTS:
        return "probe slots, or shared main slots"
    if kind in states.SPARE:
        return "main slots that nothing else can use"
    return "main slots" if kind in states.MAIN_SLOTS else "none"


def _said(is_so: bool) -> str:
    return "yes" if is_so else "no"
