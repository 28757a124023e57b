"""Which tests a change makes suspect, by the names of files and classes."""

import pytest

from service.testhealth.suspects import (
    PLACES_MAX,
    CasePlace,
    SuspectedBecause,
    places_by_changes,
)

CHANGED, NAMED, BESIDE = (
    SuspectedBecause.CHANGED,
    SuspectedBecause.NAMED_AFTER_CHANGE,
    SuspectedBecause.BESIDE_CHANGE,
)


@pytest.mark.parametrize(
    ("path", "place", "because"),
    [
        ("tests/test_cart.py", CasePlace("tests/test_cart.py", ""), CHANGED),
        ("web/src/cart.test.js", CasePlace("src/cart.test.js", ""), CHANGED),
        ("tests/test_cart.py", CasePlace("", "tests.test_cart.TestTotal"), CHANGED),
        ("shop/cart.py", CasePlace("tests/test_cart.py", "x"), NAMED),
        ("src/cart.ts", CasePlace("src/cart.spec.ts", ""), NAMED),
        ("src/main/java/shop/Cart.java", CasePlace("", "shop.CartTest"), NAMED),
        ("src/mail.ts", CasePlace("src/cart.spec.ts", ""), BESIDE),
        ("shop/mail.py", CasePlace("tests/test_cart.py", ""), None),
        ("README.md", CasePlace("test_cart.py", ""), None),
        ("shop/__init__.py", CasePlace("shop2/__init__.py", ""), None),
        ("shop/db.py", CasePlace("tests/test_db.py", ""), None),
    ],
)
def test_a_change_suspects_tests_by_their_place(path, place, because):
    found = places_by_changes([path], [place])
    assert found == ({} if because is None else {place: because})


def test_the_strongest_reasons_come_first_and_their_number_is_bounded():
    beside = [CasePlace(f"src/other{number}.test.js", "") for number in range(PLACES_MAX)]
    own, named = CasePlace("src/cart.js", ""), CasePlace("tests/cart.test.js", "")
    found = places_by_changes(["src/cart.js"], [*beside, named, own])
    assert list(found.items())[:2] == [(own, CHANGED), (named, NAMED)]
    assert len(found) == PLACES_MAX
