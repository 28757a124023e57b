"""Page tokens: whatever we did not write for this very list is refused in the same words."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.keys import KeyRing
from service.database import paging
from service.database.paging import Boundary, Listing
from service.errors import Malformed

NOW = datetime(2026, 3, 2, 14, tzinfo=UTC)
KEYS = KeyRing("a secret key for tests, long enough to be one")
LIST = Listing("listQueues", org_id=1, place=2, filters=("FAILED", None))
HERE = Boundary(("open", 7, -1, 0.25, "release/ü"), rows_before=50, backwards=True)


def refusal_of(token: str, listing: Listing = LIST, at: datetime = NOW) -> tuple[str, str]:
    """Code and sentence of what a token is refused with."""
    with pytest.raises(Malformed) as refused:
        paging.boundary_of(KEYS, listing, token, at)
    return refused.value.code, refused.value.detail


def test_a_token_says_what_was_put_into_it_however_often_it_is_shown():
    token = paging.token(KEYS, LIST, HERE, NOW)
    assert token.startswith("hgp1_")
    for _ in range(2):
        assert paging.boundary_of(KEYS, LIST, token, NOW) == HERE


@pytest.mark.parametrize("token", [None, ""])
def test_no_token_is_the_first_page(token):
    assert paging.boundary_of(KEYS, LIST, token, NOW) is None


def test_a_token_is_good_for_24_hours():
    token = paging.token(KEYS, LIST, HERE, NOW)
    assert paging.boundary_of(KEYS, LIST, token, NOW + timedelta(hours=24)) == HERE
    code, sentence = refusal_of(token, at=NOW + timedelta(hours=24, milliseconds=1))
    assert code == "page_token_expired"
    assert sentence == "The token in `cursor` is older than 24 hours. Begin again without it."


@pytest.mark.parametrize(
    "other",
    [
        replace(LIST, endpoint="listPullRequests"),
        replace(LIST, org_id=2),
        replace(LIST, place=3),
        replace(LIST, place=None),
        replace(LIST, filters=("MERGED", None)),
        replace(LIST, filters=()),
    ],
)
def test_a_token_of_another_list_is_refused(other):
    token = paging.token(KEYS, other, HERE, NOW)
    assert refusal_of(token)[0] == "invalid_page_token"
    assert refusal_of(token) == refusal_of("nonsense")


def test_a_token_with_any_character_changed_added_or_cut_is_refused():
    token = paging.token(KEYS, LIST, HERE, NOW)
    changed = [
        token[:place] + ("A" if letter != "A" else "B") + token[place + 1 :]
        for place, letter in enumerate(token)
    ]
    for other in (*changed, token[:-1], f"{token}A", f"{token}=", f" {token}", token.upper()):
        assert refusal_of(other) == refusal_of("nonsense")


@pytest.mark.parametrize(
    "given", ["x", "hgp1_", "hgp1_AA", "hgp1_é", "hgp2_eyJ2IjoxfQ", "\U0001f600"]
)
def test_what_never_was_a_token_is_refused(given):
    assert refusal_of(given)[0] == "invalid_page_token"


def test_a_second_spelling_of_the_same_bytes_is_refused():
    token = next(
        made
        for made in (
            paging.token(KEYS, LIST, replace(HERE, rows_before=10**n), NOW) for n in range(3)
        )
        if len(made.removeprefix("hgp1_")) % 4
    )
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    twin = token[:-1] + letters[letters.index(token[-1]) + 1]
    same = [base64.urlsafe_b64decode(each[5:] + "===") for each in (token, twin)]
    assert same[0] == same[1]
    assert refusal_of(twin)[0] == "invalid_page_token"


def test_a_token_outlives_the_rotation_of_the_key():
    token = paging.token(KEYS, LIST, HERE, NOW)
    rotated = KeyRing(
        "another secret key for tests, as long", "a secret key for tests, long enough to be one"
    )
    assert paging.boundary_of(rotated, LIST, token, NOW) == HERE
    with pytest.raises(Malformed):
        paging.boundary_of(KeyRing("a third secret key, which never made any"), LIST, token, NOW)


def test_the_field_that_held_the_token_is_named():
    with pytest.raises(Malformed, match=r"`page_query\.page_token`"):
        paging.boundary_of(KEYS, LIST, "x", NOW, "/page_query/page_token")


def test_a_part_goes_on_only_where_more_rows_follow():
    rows = [(number, Boundary((number,))) for number in range(3)]
    whole = paging.part_of(KEYS, LIST, rows, 3, NOW)
    assert (whole.rows, whole.next_cursor) == ((0, 1, 2), None)
    part = paging.part_of(KEYS, LIST, rows, 2, NOW)
    assert part.rows == (0, 1)
    assert paging.boundary_of(KEYS, LIST, part.next_cursor, NOW) == Boundary((1,))
    assert paging.part_of(KEYS, LIST, [], 2, NOW).next_cursor is None


def test_an_instant_keeps_its_microseconds():
    at = NOW + timedelta(microseconds=1)
    assert paging.instant(paging.micros(at)) == at
