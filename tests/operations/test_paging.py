"""Page tokens: whatever we did not write for this very list is refused in the same words."""

import base64
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.keys import KeyRing
from service.database import page_tokens, paging
from service.database.database import Tx
from service.database.page_tokens import Key, Listing, PageStart
from service.database.paging import CountedPage, PageSelection, Place
from service.errors import Malformed
from tests.harness.databases import SetClock


@dataclass(frozen=True)
class Deployed:
    """The keys and the clock of a deployment."""

    @property
    def keys(self) -> KeyRing:
        return KEYS

    @property
    def clock(self) -> SetClock:
        return SetClock(NOW)


NOW = datetime(2026, 3, 2, 14, tzinfo=UTC)
KEYS = KeyRing("a secret key for tests, long enough to be one")
LIST = Listing("listQueues", org_id=1, place=2, filters=("FAILED", None))
DEPLOYMENT = Deployed()
HERE = PageStart(("open", 7, -1, 0.25, "release/ü"), rows_before=50, backwards=True)


def refusal_of(token: str, listing: Listing = LIST, at: datetime = NOW) -> tuple[str, str]:
    """Code and sentence of what a token is refused with."""
    with pytest.raises(Malformed) as refused:
        page_tokens.page_start_of(KEYS, listing, token, at, "cursor")
    return refused.value.code, refused.value.detail


def test_a_token_says_what_was_put_into_it_however_often_it_is_shown():
    token = page_tokens.token(KEYS, LIST, HERE, NOW)
    assert token.startswith("hgp1_")
    for _ in range(2):
        assert page_tokens.page_start_of(KEYS, LIST, token, NOW, "cursor") == HERE


@pytest.mark.parametrize("token", [None, ""])
def test_no_token_is_the_first_page(token):
    assert page_tokens.page_start_of(KEYS, LIST, token, NOW, "cursor") is None


def test_a_token_is_good_for_24_hours():
    token = page_tokens.token(KEYS, LIST, HERE, NOW)
    assert page_tokens.page_start_of(KEYS, LIST, token, NOW + timedelta(hours=24), "cursor") == HERE
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
    token = page_tokens.token(KEYS, other, HERE, NOW)
    assert refusal_of(token)[0] == "invalid_page_token"
    assert refusal_of(token) == refusal_of("nonsense")


def test_a_token_with_any_character_changed_added_or_cut_is_refused():
    token = page_tokens.token(KEYS, LIST, HERE, NOW)
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
            page_tokens.token(KEYS, LIST, replace(HERE, rows_before=10**n), NOW) for n in range(3)
        )
        if len(made.removeprefix("hgp1_")) % 4
    )
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    twin = token[:-1] + letters[letters.index(token[-1]) + 1]
    same = [base64.urlsafe_b64decode(each[5:] + "===") for each in (token, twin)]
    assert same[0] == same[1]
    assert refusal_of(twin)[0] == "invalid_page_token"


def test_a_token_outlives_the_rotation_of_the_key():
    token = page_tokens.token(KEYS, LIST, HERE, NOW)
    rotated = KeyRing(
        "another secret key for tests, as long", "a secret key for tests, long enough to be one"
    )
    assert page_tokens.page_start_of(rotated, LIST, token, NOW, "cursor") == HERE
    with pytest.raises(Malformed):
        page_tokens.page_start_of(
            KeyRing("a third secret key, which never made any"), LIST, token, NOW, "cursor"
        )


def test_the_field_that_held_the_token_is_named():
    with pytest.raises(Malformed, match=r"`page_query\.page_token`"):
        page_tokens.page_start_of(KEYS, LIST, "x", NOW, "page_query.page_token")


def one_way(size: int, token: str | None = None) -> Place:
    return paging.place_of(DEPLOYMENT, LIST, PageSelection(size, token))


def test_a_page_goes_on_only_where_more_rows_follow():
    whole = one_way(3).page(range(3), lambda row: (row,))
    assert (whole.rows, whole.next_cursor) == ((0, 1, 2), None)
    page = one_way(2).page(range(3), lambda row: (row,))
    assert page.rows == (0, 1)
    following = one_way(2, page.next_cursor)
    assert (following.key, following.rows_before, following.limit) == ((1,), 2, 3)
    assert one_way(2).page([], lambda row: (row,)).next_cursor is None


def test_a_short_list_goes_on_behind_its_key_whatever_became_of_the_row():
    page = one_way(2).page_of_all([1, 2, 3, 4], lambda row: (row,))
    for rows in ([1, 3, 5], [1, 2, 3, 5]):
        following = one_way(2, page.next_cursor).page_of_all(rows, lambda row: (row,))
        assert (following.rows, following.next_cursor) == ((3, 5), None)


@dataclass
class Numbers:
    """A list of numbers in their order."""

    rows: set[int]
    end: Key = ("end",)

    def count(self, session: Tx) -> int:
        return len(self.rows)

    def key(self, row: int) -> Key:
        return (row,)

    def after(self, session: Tx, key: Key, limit: int) -> list[int]:
        return sorted(row for row in self.rows if not key or row > int(key[0]))[:limit]

    def before(self, session: Tx, key: Key, limit: int) -> list[int]:
        found = sorted(row for row in self.rows if key == self.end or row < int(key[0]))
        return found[-limit:]


def cut(numbers: Numbers, size: int, token: str | None = None) -> CountedPage[int]:
    return one_way(size, token).cut(cast("Tx", None), numbers)


@given(
    rows=st.sets(st.integers(0, 30), max_size=20),
    size=st.integers(1, 7),
    changes=st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=20),
)
def test_pages_joined_are_the_list_while_rows_come_and_go(
    rows: set[int], size: int, changes: list[tuple[bool, int]]
):
    numbers, touched = Numbers(set(rows)), {row for _, row in changes}
    for backwards in (False, True):
        page = cut(numbers, size)
        if backwards and page.last_cursor:
            page = cut(numbers, size, page.last_cursor)
        found = [page.rows]
        while token := page.prev_cursor if backwards else page.next_cursor:
            if changes:
                comes, row = changes.pop()
                (numbers.rows.add if comes else numbers.rows.discard)(row)
            page = cut(numbers, size, token)
            assert page.total_rows == len(numbers.rows)
            found.append(page.rows)
        joined = [row for part in (reversed(found) if backwards else found) for row in part]
        assert set(rows) - touched <= set(joined)
        if not backwards:
            assert joined == sorted(set(joined))


@given(rows=st.sets(st.integers(0, 30), max_size=20), size=st.integers(1, 7))
def test_pages_of_a_list_at_rest_are_the_same_both_ways(rows: set[int], size: int):
    numbers = Numbers(rows)
    page, forwards = cut(numbers, size), []
    while True:
        forwards.append(page)
        if page.next_cursor is None:
            break
        page = cut(numbers, size, page.next_cursor)
    assert [row for each in forwards for row in each.rows] == sorted(rows)
    assert [each.index for each in forwards] == list(range(len(forwards)))
    assert forwards[0].prev_cursor is None
    assert all(each.prev_cursor for each in forwards[1:])
    assert {each.total_pages for each in forwards} == {-(-len(rows) // size)}
    if len(forwards) > 1:
        page, backwards = cut(numbers, size, page.last_cursor), []
        while True:
            backwards.append(page)
            if page.prev_cursor is None:
                break
            page = cut(numbers, size, page.prev_cursor)
        assert [each.rows for each in backwards] == [each.rows for each in reversed(forwards)]
        assert backwards[0].next_cursor is None
        for page, following in zip(backwards[1:], backwards, strict=False):
            assert page.next_cursor
            assert cut(numbers, size, page.next_cursor).rows == following.rows


def test_a_list_that_has_lost_all_its_rows_has_one_empty_page():
    numbers = Numbers({1, 2, 3, 4, 5})
    first = cut(numbers, 2)
    ways = [first.next_cursor, first.last_cursor, cut(numbers, 2, first.next_cursor).prev_cursor]
    numbers.rows.clear()
    for token in (None, *ways):
        page = cut(numbers, 2, token)
        assert (page.rows, page.total_rows, page.total_pages) == ((), 0, 0)
        assert (page.next_cursor, page.prev_cursor, page.last_cursor) == (None, None, None)


def test_an_instant_keeps_its_microseconds():
    at = NOW + timedelta(microseconds=1)
    assert page_tokens.instant(page_tokens.micros(at)) == at
