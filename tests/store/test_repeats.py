"""A key of a request is claimed once, and its answer is kept for a day."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from service.accounts.store import repeats
from service.accounts.store.repeats import CLAIMED, KEPT, Claimed, Kept, Keyed, Reused, Running
from service.database.database import Store
from service.process.store import retention
from service.process.store.retention import RetentionLimits
from tests.store.conftest import NOW

KEYED = Keyed("token", 7, "/v1/addQueueHold", "one", b"digest")
ANSWER = Kept(200, "application/json", b"sealed \x00\xff")
SECOND = timedelta(seconds=1)


def test_the_first_request_works_on_it_and_the_next_one_is_told_so(session: Connection):
    assert repeats.claim(session, KEYED, "a", NOW) == Claimed()
    assert repeats.claim(session, KEYED, "b", NOW) == Running()


@pytest.mark.parametrize(
    "other",
    [
        replace(KEYED, token_id="another"),
        replace(KEYED, path="/v1/createQueue"),
        replace(KEYED, key="two"),
        replace(KEYED, key="ONE"),
    ],
)
def test_a_key_belongs_to_one_token_and_one_endpoint(session: Connection, other: Keyed):
    repeats.claim(session, KEYED, "a", NOW)
    assert repeats.claim(session, other, "b", NOW) == Claimed()


def test_what_was_answered_is_answered_for_a_day(session: Connection):
    repeats.claim(session, KEYED, "a", NOW)
    repeats.keep(session, KEYED, "a", ANSWER)
    assert repeats.claim(session, KEYED, "b", NOW + KEPT - SECOND) == ANSWER
    assert repeats.claim(session, KEYED, "c", NOW + KEPT) == Claimed()
    assert repeats.claim(session, KEYED, "d", NOW + KEPT) == Running()


def test_another_body_is_refused_whether_or_not_the_first_was_answered(session: Connection):
    other = replace(KEYED, digest=b"another")
    repeats.claim(session, KEYED, "a", NOW)
    assert repeats.claim(session, other, "b", NOW) == Reused()
    repeats.keep(session, KEYED, "a", ANSWER)
    assert repeats.claim(session, other, "b", NOW) == Reused()
    assert repeats.claim(session, other, "b", NOW + KEPT) == Claimed()


def test_a_request_whose_process_died_is_free_after_a_minute(session: Connection):
    repeats.claim(session, KEYED, "a", NOW)
    assert repeats.claim(session, KEYED, "b", NOW + CLAIMED - SECOND) == Running()
    assert repeats.claim(session, KEYED, "b", NOW + CLAIMED) == Claimed()
    assert repeats.claim(session, KEYED, "c", NOW + CLAIMED) == Running()


def test_who_was_overtaken_neither_answers_nor_frees_the_key(session: Connection):
    repeats.claim(session, KEYED, "a", NOW)
    repeats.claim(session, KEYED, "b", NOW + CLAIMED)
    repeats.keep(session, KEYED, "a", ANSWER)
    repeats.give_up(session, KEYED, "a")
    assert repeats.claim(session, KEYED, "c", NOW + CLAIMED) == Running()
    repeats.keep(session, KEYED, "b", ANSWER)
    assert repeats.claim(session, KEYED, "c", NOW + CLAIMED) == ANSWER


def test_a_key_that_was_given_up_is_free_at_once_also_for_another_body(session: Connection):
    repeats.claim(session, KEYED, "a", NOW)
    repeats.give_up(session, KEYED, "a")
    assert repeats.claim(session, replace(KEYED, digest=b"x"), "b", NOW) == Claimed()


def test_an_answer_is_not_given_up(session: Connection):
    repeats.claim(session, KEYED, "a", NOW)
    repeats.keep(session, KEYED, "a", ANSWER)
    repeats.give_up(session, KEYED, "a")
    assert repeats.claim(session, KEYED, "b", NOW) == ANSWER


def test_after_a_day_it_is_forgotten(session: Connection):
    for key in ("one", "two"):
        repeats.claim(session, replace(KEYED, key=key), "a", NOW)
    limits = RetentionLimits()
    assert retention.prune(session, NOW + KEPT, limits) == 0
    assert retention.prune(session, NOW + KEPT + SECOND, limits) == 2


async def test_of_many_requests_at_once_one_gets_the_claim(store: Store):
    asking = [store.run(repeats.claim, KEYED, f"request {n}", NOW) for n in range(12)]
    found = await asyncio.gather(*asking)
    assert found.count(Claimed()) == 1
    assert found.count(Running()) == 11
