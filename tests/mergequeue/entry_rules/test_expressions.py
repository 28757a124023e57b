"""Expressions of rules: what they see, what is refused, and that each ends soon."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.mergequeue.engine.rules import Seen
from service.mergequeue.entry_rules import expressions
from tests.mergequeue.entry_rules.pulls import pull

SEEN = pull(
    labels=("hotfix", "ui"),
    approvals=("bob",),
    branch="fix/1",
    base="release/2",
    depends_on=(3,),
    auto_merge=True,
)


@pytest.mark.parametrize(
    "expression",
    [
        '"hotfix" in labels && approvals.size() >= 1',
        'labels.exists(label, label.startsWith("hot"))',
        'base.startsWith("release/") && branch.endsWith("/1")',
        'author == "ada" && !draft && !fork && auto_merge',
        "number == 7 && 3 in depends_on",
        r'title.matches("(?i)^fix\\b")',
        'labels.filter(each, each != "ui").size() == 1 && labels.all(each, each.size() < 9)',
        '"exists(exists(exists(" in labels || true',
        'title == r"map(\\" || true // exists(exists(exists(',
        """title != '''it's "map(''' """,
    ],
)
def test_an_expression_sees_the_pull_request(expression):
    assert expressions.fault(expression) is None
    assert expressions.is_true(expression, SEEN, None)


@pytest.mark.parametrize(
    ("expression", "touched", "only"),
    [
        ('"docs/*"', True, False),
        ('"*.md"', True, False),
        ('"docs/*", "*.py"', True, True),
        ('"DOCS/*", "src/**"', True, True),
        ('"other/*"', False, False),
    ],
)
def test_globs_meet_the_changed_paths(expression, touched, only):
    paths = ("docs/guide/a.md", "src/b.py")
    assert expressions.is_true(f"touches({expression})", SEEN, paths) is touched
    assert expressions.is_true(f"only({expression})", SEEN, paths) is only


def test_a_pull_request_without_changes_changes_nothing_only():
    assert not expressions.is_true('only("*")', SEEN, ())
    assert not expressions.is_true('touches("*")', SEEN, ())


def test_paths_are_asked_for_only_by_their_functions():
    assert expressions.reads('draft || touches("a")') == {"draft", "touches"}
    assert expressions.reads('only("a")') == {"only"}
    assert expressions.reads('"touches(" in labels') == {"labels"}
    assert expressions.reads("touches(") == frozenset()


@pytest.mark.parametrize("expression", ['touches("a")', '!touches("a")', 'only("a") != true'])
def test_paths_that_are_not_known_make_an_expression_unclear(expression):
    with pytest.raises(expressions.Unclear, match="changed paths, which are not known"):
        expressions.is_true(expression, SEEN, None)


def test_paths_that_do_not_matter_need_not_be_known():
    assert expressions.is_true('auto_merge || touches("a")', SEEN, None)


def test_unknown_paths_print_nothing(capfd):
    with pytest.raises(expressions.Unclear):
        expressions.is_true('touches("a")', SEEN, None)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("1 +", "line 1, character 4: mismatched input"),
        ("", "line 1, character 1"),
        ("label == 'a'", "names the unknown `label`; there are number, title,"),
        ("now() > 1", "calls the unknown `now`; there are touches, only,"),
        ('timestamp(title) == timestamp("2026-01-01T00:00:00Z")', "the unknown `timestamp`"),
        ("number", "is not true or false"),
        ("draft ? true : 1", "is not true or false"),
        ("title < 1", "No such overload"),
        ("labels[9] == 'a'", "index out of bounds"),
        ("labels.startsWith('x')", "'startsWith'"),
        ("labels.exists(x, true) && x == 'a'", "'x'"),
        ("touches(number)", "something else than texts"),
        ('title.matches("[")', "not a valid regex"),
        ('title.matches("a{2}")', "counted repetition"),
        ("x" * 501, "longer than 500 characters"),
        (
            "labels.exists(x, labels.exists(y, x == y))",
            "`exists` inside another of all, exists",
        ),
        (
            "labels.exists // (\n (x, labels\n.filter // )\n (y, true).size() == 1)",
            "has `filter` inside",
        ),
        ("labels.existsOne(x, true)", "calls the unknown `existsOne`"),
        ("labels.map(x, labels).size() > 1", "calls the unknown `map`"),
        (f"({'+'.join(['labels'] * 6)}).all(x, true)", "more than 4 `+` together with"),
        (" || ".join(["labels.exists(x, x == '')"] * 3), "more than 2 of all, exists"),
        ("labels.exists(x, title.matches(x))", "has `matches` together with"),
        (" || ".join(["title.matches('a')"] * 3), "more than 2 `matches`"),
        ("labels.exists(`x`, true)", "line 1, character 15"),
    ],
)
def test_a_fault_of_an_expression_is_named(expression, words):
    found = expressions.fault(expression)
    assert found is not None
    assert words in found
    assert "\n" not in found


def test_what_only_some_pull_requests_lack_is_no_fault():
    assert expressions.fault('labels[0] == "a"') is None
    with pytest.raises(expressions.Unclear, match="index out of bounds"):
        expressions.is_true('labels[0] == "a"', pull(), None)


def test_many_different_globs_are_unclear():
    labels = tuple(str(each) for each in range(60))
    with pytest.raises(expressions.Unclear, match="more than 50 different globs"):
        expressions.is_true("labels.exists(x, touches(x))", pull(labels=labels), ("a",))


FULL = Seen(
    number=2**31,
    title="t" * 256,
    author="a" * 39,
    branch="b" * 244,
    base="main",
    labels=tuple(f"{each:050}" for each in range(100)),
    approvals=tuple(f"{each:039}" for each in range(100)),
    draft=True,
    fork=True,
    auto_merge=True,
    depends_on=tuple(range(100)),
)
_PATHS = tuple(f"{'folder/' * 20}{each}.py" for each in range(3000))


@pytest.mark.parametrize(
    "expression",
    [
        f"labels.map(x, {'+'.join(['labels'] * 28)}).map(y, {'+'.join(['y'] * 80)}).size() > 1",
        "labels.existsOne(v, labels.existsOne(w, labels.existsOne(x, labels.existsOne(y, true))))",
        f"({'+'.join(['labels'] * 30)}).all(x, !('' in ({'+'.join(['labels'] * 30)})))",
        "(labels + labels + labels).all(x, !('' in (labels + labels + labels)))",
        'title.matches("' + r"\\w" * 150 + '")',
        'title.matches("' + "(.*" * 40 + ")" * 40 + 'x")',
        "labels.exists(x, touches(" + ",".join(f'"*{each}*"' for each in range(49)) + "))",
        "labels.exists(x, only(x + 'a'))",
        "!" * 499 + "draft",
        "(" * 60 + "draft" + ")" * 60,
        "(" * 240 + "draft" + ")" * 240,
        "draft" + " && draft" * 50,
    ],
)
def test_an_expression_ends_soon(expression):
    """What the bounds refuse takes minutes, so that the time limit of tests would end it."""
    with contextlib.suppress(expressions.Unclear):
        expressions.is_true(expression, FULL, _PATHS)


_PIECES = st.sampled_from(
    [
        *("labels", "title", "draft", "number", "x", "labels.exists(x, ", "title.matches(", ")"),
        *("(", "[", "]", "{", "}", "&&", "||", "!", "-", "==", "in", "?", ":", ",", '"', "'", "`"),
        *(
            "r'",
            '"""',
            "\\",
            "//",
            "\n",
            "1",
            "a",
            "touches(",
            "only(",
            ".filter(y, y)",
            ".map(y, y)",
            ".size()",
        ),
        *("true", "null", "b'", "1u", "1.5", "9223372036854775807", "+", "*", "/", "%", " "),
    ]
)


@given(st.lists(_PIECES, max_size=30).map("".join) | st.text(max_size=60))
@settings(max_examples=500, deadline=None)
def test_no_text_breaks_the_judge(expression):
    fault = expressions.fault(expression)
    assert fault is None or fault.strip()
    if fault is None:
        assert expressions.is_true(expression, SEEN, ("a.md",)) in {True, False}
