"""Who owns a file: the patterns of the hosts, a line of FLAKY.md 7.4 each."""

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.flaky import owners


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
    assert [file for file in owned + not_owned if rules.of(file)] == owned


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
    assert owners.owners_in(FILE).of(file) == expected


def test_a_file_that_is_too_long_owns_nothing():
    line = "* @octo\n"
    assert owners.owners_in(line + "#" * (owners.BYTES_MAX - len(line))).rules
    assert not owners.owners_in(line + "#" * (owners.BYTES_MAX - len(line) + 1)).rules
    assert not owners.owners_in(line + "ü" * (owners.BYTES_MAX // 2)).rules


@given(st.text(max_size=200), st.text(max_size=50))
def test_no_text_raises(text, file):
    assert isinstance(owners.owners_in(text).of(file), tuple)


@pytest.mark.parametrize(
    ("pattern", "file"),
    [
        ("*a" * 400 + "b", "a" * 5_000),
        ("**/a/" * 150 + "b", "a/" * 500 + "a"),
        ("*?" * 400 + "b", "a" * 5_000),
        ("a" * 2_000, "a" * 5_000),
    ],
)
def test_no_pattern_is_slow(pattern, file):
    rules = owners.owners_in(f"{pattern} @octo")
    began = perf_counter()
    assert rules.of(file) == ()
    assert perf_counter() - began < 0.5
