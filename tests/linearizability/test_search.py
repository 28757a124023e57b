"""The search finds an order where there is one, and none where there is none."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.linearizability.model import Asked, Line, after
from tests.linearizability.search import Call, order_of

CREATED = Asked("createQueue", "RUNNING", status=200)
DELETED = Asked("deleteQueue", status=200)
SUBMITTED = Asked("submitPullRequest", 1, status=200, word="created")
CANCELLED = Asked("cancelPullRequest", 1, status=200, word="CANCELLED")
REFUSED = Asked("submitPullRequest", 1, status=404, word="queue_not_found")


def explained(*calls: tuple[int, int, Asked]) -> list[Asked] | None:
    """The order that explains calls from one moment to another, if there is one."""
    found = order_of([Call(*each) for each in calls], Line(), after)
    return None if found is None else [each.operation for each in found]


def test_a_submission_may_come_before_the_cancellation_that_was_answered_first():
    order = explained((0, 1, CREATED), (2, 9, SUBMITTED), (3, 5, CANCELLED), (6, 8, DELETED))
    assert order == [CREATED, SUBMITTED, CANCELLED, DELETED]


def test_nothing_was_submitted_to_a_queue_that_was_deleted_as_an_empty_one():
    assert explained((0, 1, CREATED), (2, 9, SUBMITTED), (3, 5, DELETED)) is None
    assert explained((0, 1, CREATED), (2, 9, REFUSED), (3, 5, DELETED)) is not None


def test_an_answer_is_not_explained_by_a_call_that_began_after_it():
    assert explained((0, 1, CREATED), (2, 3, REFUSED), (4, 5, DELETED)) is None


def test_a_history_without_calls_is_explained():
    assert explained() == []


def count(total: int, seen: int) -> int | None:
    """A counter: each operation is what it found before it adds one."""
    return total + 1 if total == seen else None


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 4)), min_size=1, max_size=5
    )
)
def test_it_agrees_with_a_look_at_every_order(given_calls):
    calls = [Call(began, began + length, seen) for began, length, seen in given_calls]
    explains = any(
        all(one.operation == place for place, one in enumerate(order))
        and all(
            not later.ended < earlier.began
            for place, earlier in enumerate(order)
            for later in order[place:]
        )
        for order in permutations(calls)
    )
    assert (order_of(calls, 0, count) is not None) is explains


@pytest.mark.parametrize("word", ["updated", "unchanged"])
def test_the_model_knows_what_a_second_submission_changes(word):
    priority = 50 if word == "updated" else None
    again = Asked("submitPullRequest", 1, priority, status=200, word=word)
    assert explained((0, 1, CREATED), (2, 3, SUBMITTED), (4, 5, again)) is not None
