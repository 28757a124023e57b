"""Who owns a file: the patterns of the hosts, a line of docs/design/reports.md 9 each."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.testhealth.reports import owners


@pytest.mark.parametrize(
    ("pattern", "owned", "not_owned"),
    [
        ("*", ["a.py", "a/b.py"], []),
        ("*.js", ["a.js", "b/c/a.js"], ["a.jsx", "a.js.map"]),
        ("/build/logs/", ["build/logs/a.txt", "build/logs/b/a"], ["a/build/logs/a", "build/logs"]),
        ("docs/*", ["docs/a.md"], ["docs/b/a.md", "a/docs/a.md"]),
        ("apps/", ["apps/a", "b/apps/c/a"], ["apps"]),
        ("/docs/", ["docs/a"], ["b/docs/a"]),
        ("docs", ["docs", "docs/a", "b/docs/a", "b/docs"], ["docs2/a"]),
        ("/apps/github", ["apps/github", "apps/github/a"], ["apps/github2"]),
        ("**/logs", ["logs/a", "build/logs/a", "a/b/logs"], ["logs2/a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b/c"], ["a/xb", "b"]),
        ("dir/**", ["dir/a", "dir/b/a"], ["dir", "c/dir/a"]),
        ("dir/**/", ["dir/a", "dir/b/a"], ["dir", "c/dir/a"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "a/src/b.py"]),
        ("a?c.py", ["abc.py", "x/adc.py"], ["ac.py", "abbc.py"]),
        ("t*st*.py", ["test_a.py", "tst.py"], ["ts.py"]),
        ("App.py", ["App.py"], ["app.py"]),
        (r"with\ blank/a.py", ["with blank/a.py"], ["with"]),
        (r"\#a", ["#a"], ["a"]),
        ("[ab].py", ["[ab].py"], ["a.py"]),
        ("a+b(c).py", ["a+b(c).py"], ["aab(c).py"]),
        ("/", [], ["a"]),
    ],
)
def test_a_pattern(pattern, owned, not_owned):
    rules = owners.owners_in(f"{pattern} @octo/web")
    assert [file for file in owned + not_owned if rules.owners_of(file)] == owned


FILE = """
# who owns what
*               @octo/all     # everything else
/shop/          @octo/shop shop@example.org @ann
/shop/generated
!/shop/a.py     @nobody
*.md            nonsense @docs @a@b@c
"""


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("a.py", ("@octo/all",)),
        ("shop/a.py", ("@octo/shop", "shop@example.org", "@ann")),
        ("shop/generated/a.py", ()),
        ("shop/README.md", ("@docs",)),
        ("/shop/a.py", ()),
        ("", ()),
    ],
)
def test_the_last_match_counts_and_one_without_owners_clears(file, expected):
    assert owners.owners_in(FILE).owners_of(file) == expected


def test_a_file_that_is_too_long_owns_nothing():
    line = "* @octo\n"
    assert owners.owners_in(line + "#" * (owners.BYTES_MAX - len(line))).rules
    assert not owners.owners_in(line + "#" * (owners.BYTES_MAX - len(line) + 1)).rules
    assert not owners.owners_in(line + "ü" * (owners.BYTES_MAX // 2)).rules


@given(st.text(max_size=200), st.text(max_size=50))
def test_no_text_raises(text, file):
    assert isinstance(owners.owners_in(text).owners_of(file), tuple)


@pytest.mark.parametrize(
    ("pattern", "file"),
    [
        ("*a" * 400 + "b", "a" * 5_000),
        ("**/a/" * 150 + "b", "a/" * 300 + "a"),
        ("*?" * 400 + "b", "a" * 5_000),
        ("a" * 2_000, "a" * 5_000),
    ],
)
def test_no_pattern_is_slow(pattern, file):
    rules = owners.owners_in(f"{pattern} @octo")
    began = process_time()
    assert rules.owners_of(file) == ()
    assert process_time() - began < 0.5


PIECES = st.sampled_from(["a", "b", "*", "?", r"\*", r"\a"])
NAMES = st.lists(PIECES, min_size=1, max_size=4).map("".join)
PATTERNS = st.builds(
    lambda start, names, end: start + "/".join(names) + end,
    st.sampled_from(["", "/"]),
    st.lists(st.one_of(NAMES, st.just("**")), min_size=1, max_size=3),
    st.sampled_from(["", "/"]),
)
PATHS = st.lists(st.text("ab*\\", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)


@given(st.lists(PATTERNS, max_size=8), PATHS)
def test_the_rule_found_is_the_last_that_fits(lines, path):
    text = "\n".join(f"{pattern} @o{no}" for no, pattern in enumerate(lines))
    segments = [owners.segments_of(pattern) for pattern in lines]
    fitting = [no for no, each in enumerate(segments) if owners.fits(each, path.split("/"))]
    expected = (f"@o{fitting[-1]}",) if fitting else ()
    assert owners.owners_in(text).owners_of(path) == expected


def test_a_rule_is_asked_only_of_paths_that_may_fit():
    lines = (
        f"/team{no % 99}/pkg{no}/ @a\nteam{no % 99}/**/mod{no}*.py @b\n*.e{no} @c"
        for no in range(5_000)
    )
    began = process_time()
    rules = owners.owners_in("\n".join(lines))
    read = process_time()
    found = [rules.owners_of(f"team{no % 99}/src/mod{no}_test.py") for no in range(300)]
    assert process_time() - read < read - began
    assert found == [("@b",)] * 300


def test_owners_are_few_and_short_as_each_test_keeps_its_own():
    long = "@" + "a" * owners.OWNER_CHARACTERS_MAX
    many = " ".join(f"@o{no}" for no in range(owners.OWNERS_MAX + 1))
    found = owners.owners_in(f"* {long} {long[:-1]} {many}\n").owners_of("a.py")
    assert found[0] == long[:-1]
    assert len(found) == owners.OWNERS_MAX
