"""A test has one id, wherever and whenever it is computed."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.testhealth.reports import identity
from service.testhealth.reports.identity import CaseKey, RepositoryKey
from service.testhealth.reports.results import CaseResult

FIRST = RepositoryKey("org_slug", "host/owner/name")
FIELDS = ("file", "classname", "parent", "name")
SECOND = RepositoryKey("example_org", "example_repo")

# The vectors of docs/design/reports.md 7: repository, file, classname, parent, name, claim,
# variant, id.
VECTORS = [
    (
        FIRST,
        "file class_name parent_name test_name",
        "",
        "",
        "aad1f138-09ab-5ea9-9c21-af48a03d6edd",
    ),
    (
        FIRST,
        "file class_name parent_name test_name",
        "trunk:example-id",
        "",
        "208beb01-6179-546e-b0dd-8502e24ae85c",
    ),
    (
        SECOND,
        "src/lib.rs ExampleClass parent/fact/path example_name",
        "",
        "",
        "06cb6db5-f807-5198-b072-af67a0636f8a",
    ),
    (
        SECOND,
        "src/lib.rs ExampleClass parent/fact/path example_name",
        "",
        "unix",
        "1bf61475-b542-5faf-aa85-e66a691257a3",
    ),
    (
        SECOND,
        "src/lib.rs ExampleClass parent/fact/path example_name",
        "trunk:12345",
        "unix",
        "4392f63c-8dc9-5cec-bbdc-e7b90c2e5a6b",
    ),
]


@pytest.mark.parametrize(("repository", "fields", "claimed", "variant", "expected"), VECTORS)
def test_the_five_vectors_hold(repository, fields, claimed, variant, expected):
    file, classname, parent, name = fields.split(" ")
    key = CaseKey(file, classname, parent, name, claimed)
    assert identity.id_of(repository, key, variant) == UUID(expected)


def test_a_claimed_uuid5_is_the_id_with_and_without_variant():
    claimed = "06cb6db5-f807-5198-b072-af67a0636f8a"
    key = CaseKey("f", "c", "p", "n", claimed.upper())
    assert identity.id_of(FIRST, key) == identity.id_of(SECOND, key, "unix") == UUID(claimed)


@pytest.mark.parametrize(
    "claimed",
    [
        "c232ab00-9414-11ec-b3c8-9f68deced846",  # version 1
        "06cb6db5f8075198b072af67a0636f8a",  # another spelling
        "urn:uuid:06cb6db5-f807-5198-b072-af67a0636f8a",
        "TRUNK:1",
        "42",
    ],
)
def test_any_other_claim_is_ignored(claimed):
    key = CaseKey("f", "c", "p", "n", claimed)
    assert not identity.is_claim(claimed)
    assert identity.id_of(FIRST, key) == identity.id_of(FIRST, CaseKey("f", "c", "p", "n"))


def test_our_own_prefix_claims_as_well():
    assert identity.is_claim("headgate:checkout")
    key = CaseKey("f", "c", "p", "n", "headgate:checkout")
    moved = CaseKey("g", "d", "q", "m", "headgate:checkout")
    assert identity.id_of(FIRST, key) == identity.id_of(FIRST, moved)
    assert identity.id_of(FIRST, key) != identity.id_of(SECOND, key)


def test_a_hash_sign_in_a_field_can_make_two_tests_one():
    assert identity.id_of(FIRST, CaseKey("a#b", "c", "", "n")) == identity.id_of(
        FIRST, CaseKey("a", "b#c", "", "n")
    ), "the first sight owns the id; intake warns of the second (identity_clash)"


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="#"))


@given(TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)
def test_every_field_counts_and_no_text_is_refused(file, classname, parent, name, variant):
    key = CaseKey(file, classname, parent, name)
    once = identity.id_of(FIRST, key, variant)
    assert once == identity.id_of(FIRST, replace(key), variant)
    assert once.version == 5
    others = [replace(key, **{field: "x" + getattr(key, field)}) for field in FIELDS]
    ids = {once, *(identity.id_of(FIRST, other, variant) for other in others)}
    assert len(ids) == len({key, *others})


@pytest.mark.parametrize(
    ("file", "source_root", "expected"),
    [
        ("tests/test_cart.py", "", "tests/test_cart.py"),
        ("./tests/test_cart.py", "", "tests/test_cart.py"),
        ("tests\\ui\\Cart.cs", "", "tests/ui/Cart.cs"),
        ("a/../b/c.py", "", "b/c.py"),
        ("a/b/..", "", "a"),
        ("../a/c.py", "", "../a/c.py"),
        ("a/./b.py", "", "a/b.py"),
        ("file:///build/src/a.py", "/build/src", "a.py"),
        ("/build/src/a.py", "/build/src/", "a.py"),
        ("/build/source/a.py", "/build/src", "/build/source/a.py"),
        ("C:\\build\\a\\b.cs", "C:\\build", "a/b.cs"),
        ("C:\\build\\a\\b.cs", "", "C:/build/a/b.cs"),
        ("/a/../b.py", "", "/b.py"),
        ("/../b.py", "", "/../b.py"),
        (" Tests/A.py ", "", " Tests/A.py "),
        ("a//b.py", "", "a//b.py"),
        ("a...b/c.py", "", "a...b/c.py"),
        ("a./b.py", "", "a./b.py"),
        ("", "/build", ""),
    ],
)
def test_a_path_is_normalized(file, source_root, expected):
    assert identity.normalized_file(file, source_root) == expected


@pytest.mark.parametrize(
    ("file", "expected"),
    [("/src/a.py", True), ("C:/a.cs", True), ("src/a.py", False), ("", False), ("1:/a", False)],
)
def test_a_path_of_one_machine_is_seen(file, expected):
    assert identity.is_absolute(file) is expected


@pytest.mark.parametrize(
    ("name", "masks", "expected"),
    [
        ("port 4711 answers", ["port * answers"], "port * answers"),
        ("port 4711 answers", [], "port 4711 answers"),
        ("port answers", ["port * answers"], "port answers"),
        ("ab", ["a*b"], "a*b"),
        ("seed 7", ["seed *", "*7"], "seed *"),
        ("Seed 7", ["seed *"], "Seed 7"),
    ],
)
def test_a_mask_of_the_repository_takes_the_changing_part_out_of_a_name(name, masks, expected):
    assert identity.masked_name(name, masks) == expected


def a_case(name, parent="", outermost_suite="", claimed_id=""):
    """A case of a suite, nested where an outermost one is given."""
    return CaseResult(name, "", parent, "", outermost_suite=outermost_suite, claimed_id=claimed_id)


def test_a_test_in_nested_suites_has_the_id_of_its_outermost_as_an_alias():
    cases = [
        a_case("alone", "a/b", "a"),
        a_case("shared", "a/b", "a"),
        a_case("shared", "a/c", "a"),
        a_case("taken", "a/b", "a"),
        a_case("taken", "a"),
        a_case("claims", "a/b", "a", "trunk:1"),
    ]
    tests = {identity.id_of(FIRST, identity.key_of(case), "unix"): case for case in cases}
    alias = identity.id_of(FIRST, CaseKey("", "", "a", "alone"), "unix")
    assert identity.aliases_of(FIRST, tests, "unix") == {alias: next(iter(tests))}


@pytest.mark.parametrize("variant", ["", "unix"])
def test_the_ids_of_many_cases_are_those_that_each_has(variant):
    plain = CaseResult("total", "Cart", "ui/cart", "tests/cart.py")
    claims = ("", "headgate:total", "208beb01-6179-546e-b0dd-8502e24ae85c", "nobody:total")
    cases = [plain._replace(claimed_id=claim) for claim in claims]
    told = [str(identity.id_of(FIRST, identity.key_of(case), variant)) for case in cases]
    assert identity.ids_of(FIRST, cases, variant) == told
