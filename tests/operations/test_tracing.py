"""Spans of all work about a submission join in its trace, whoever did it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import UUID

import pytest

from service import tracing
from service.tracing import Side, Span, Traces

ONE, OTHER = "bc084540-ba7a-5517-b5ea-b3e25c361956", "0b0f0c80-6a0c-5a0a-8a53-3e1a6a3b5d4d"
BEGAN = datetime(2026, 3, 2, 14, tzinfo=UTC)


class Kept(list[Span]):
    """Keeps what is recorded."""

    record = list.append


def now() -> datetime:
    return BEGAN


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def traces(kept: Kept) -> Traces:
    return Traces(kept, now, "one")


def tree(spans: list[Span], trace: str) -> dict[str, str]:
    """Name of each span in a trace → that of its parent, empty for the root span's id."""
    own = [span for span in spans if span.trace == UUID(trace).int]
    names = {span.id: span.name for span in own} | {tracing.root_of(trace): ""}
    return {span.name: names[span.parent] for span in own if span.parent}


def test_work_is_in_the_trace_of_each_submission_that_turns_up_in_it(
    traces: Traces, kept: Kept
) -> None:
    with traces.work("webhook", {}, Side.INCOMING):
        with tracing.inside("call", {}, Side.OUTGOING):
            tracing.note(status=200)
        with traces.work("turn", {}):
            tracing.about(ONE, OTHER)
    assert tree(kept, ONE) == tree(kept, OTHER)
    assert tree(kept, ONE) == {"webhook": "", "call": "webhook", "turn": "webhook"}
    assert len({(span.trace, span.id) for span in kept}) == len(kept) == 6
    assert {span.fields.get("status") for span in kept if span.name == "call"} == {200}


def test_work_about_no_submission_is_not_recorded(traces: Traces, kept: Kept) -> None:
    with traces.work("webhook", {}), tracing.inside("call", {}):
        pass
    assert kept == []


def test_spans_of_two_processes_have_one_root(kept: Kept) -> None:
    for traces in (Traces(kept, now, "one"), Traces(kept, now, "other")):
        with traces.work("effect", {}):
            tracing.about(ONE)
    traces.submission(ONE, "submission", (BEGAN, BEGAN))
    traces.part(ONE, "run", "test run", (BEGAN, BEGAN))
    traces.part(ONE, "run", "test run", (BEGAN, BEGAN))
    one, other, root, run, again = kept
    assert one.id != other.id
    assert run == again
    assert {span.trace for span in kept} == {UUID(ONE).int}
    assert {span.parent for span in (one, other, run)} == {root.id}
    assert root.parent == 0


@contextmanager
def broken() -> Iterator[None]:
    with pytest.raises(ZeroDivisionError):
        yield


def test_an_error_is_that_of_the_work_that_it_ended(traces: Traces, kept: Kept) -> None:
    with broken(), traces.work("effect", {}):
        tracing.about(ONE)
        with traces.work("turn", {}):
            tracing.failed(TimeoutError("a secret"))
        raise ZeroDivisionError("a secret")
    errors = {span.name: span.error for span in kept}
    assert errors == {"effect": "ZeroDivisionError", "turn": "TimeoutError"}
    assert "secret" not in repr(kept)


def test_what_is_recorded_of_one_work_has_bounds(traces: Traces, kept: Kept) -> None:
    with traces.work("sweep", {}):
        tracing.about(*(str(UUID(int=number)) for number in range(1, 200)))
        for _ in range(200):
            with tracing.inside("call", {}):
                pass
    assert len(kept) == tracing.SUBMISSIONS_MAX * (1 + tracing.INNER_MAX)


def test_without_a_recorder_nothing_is_under_way() -> None:
    with tracing.OFF.work("webhook", {}):
        assert not tracing.is_under_way()
        with tracing.inside("call", {}):
            tracing.about(ONE)
            tracing.note(status=200)
            tracing.failed(TimeoutError())


def test_an_id_of_another_form_has_a_trace_too() -> None:
    assert 0 < tracing.trace_of("s-1") != tracing.trace_of("s-2")
