"""The lines of a description that make a pull request wait."""

from datetime import UTC, datetime

import pytest

from service.mergequeue.operations import descriptions
from service.mergequeue.operations.descriptions import Lines
from service.vocabulary import Blocker, BlockerCode

AT = datetime(2026, 12, 1, 8, tzinfo=UTC)
UNREADABLE = Blocker(BlockerCode.DEPENDENCY_LOST, "unreadable")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", Lines()),
        ("Depends-On: #12, #13\r\nText.\r\ndepends-on:#13 #14\r\n", Lines((12, 13, 14))),
        ("This Depends-On: #12", Lines()),
        ("Depends-On:\n#12", Lines()),
        ("Depends-On: the other one", Lines(faults=(UNREADABLE,))),
        ("Depends-On: octo/other#12", Lines(faults=(UNREADABLE,))),
        ("<!--\nDepends-On: #1\n-->\nDepends-On: #2", Lines((2,))),
        ("```\nNot-Before: never\n```", Lines()),
        ("NOT-BEFORE: 2026-12-01T09:00+01:00", Lines(not_before=AT)),
        ("Not-Before: 2026-12-01 09:00 Europe/Berlin", Lines(not_before=AT)),
        ("Not-Before: 2026-12-01T08:00Z\nNot-Before: 2026-11-01T08:00Z", Lines(not_before=AT)),
    ],
)
def test_lines_at_the_beginning_count_outside_of_comments_and_code(body: str, said: Lines):
    assert descriptions.lines_of(body) == said


@pytest.mark.parametrize(
    "before",
    [
        "It writes `<!--` into templates.",
        "It writes `` ` <!-- ` `` into templates.",
        "An arrow <!-- that is never closed",
        "<!-- one --> and <!-- two -->",
        "<!--\n-->",
        "```inline``` code",
        "```\ncode\n ```",
        "  ```\n<!--\n```",
        "````\n```\n````",
        "```\n```python\n```",
        "~~~\n```\n~~~",
        "```\n~~~\n```  ",
    ],
)
def test_what_is_no_comment_and_no_code_hides_no_line(before: str):
    assert descriptions.lines_of(f"{before}\nDepends-On: #12") == Lines((12,))


@pytest.mark.parametrize(
    "body",
    [
        "   ```\nDepends-On: #12\n```",
        "````\n```\nDepends-On: #12\n````",
        "```\nDepends-On: #12",
        "~~~ text `of` code\nDepends-On: #12\n~~~",
        "<!-- a\n--> <!--\nDepends-On: #12\n-->",
        "<!-- a\n```\n-->\n```\nDepends-On: #12\n```",
        "`a` <!-- `b`\nDepends-On: #12\n-->",
    ],
)
def test_comments_and_code_say_nothing(body: str):
    assert descriptions.lines_of(body) == Lines()


@pytest.mark.parametrize(
    "text",
    [
        "soon",
        "2026-12-01T09:00",
        "2026-12-01 09:00 ../etc",
        "2026-12-01 09:00 Nowhere/Here",
        "0001-01-01T00:00+23:59",
        "9999-12-31T23:59-23:59",
    ],
)
def test_a_time_that_cannot_be_read_is_a_fault(text: str):
    fault = Blocker(BlockerCode.NOT_BEFORE_UNREADABLE, text)
    assert descriptions.lines_of(f"Not-Before: {text}") == Lines(faults=(fault,))


def test_more_dependencies_than_anybody_has_are_a_fault():
    found = descriptions.lines_of("Depends-On: " + ", ".join(f"#{one}" for one in range(1, 100)))
    assert len(found.depends_on) == descriptions.DEPENDENCIES_MAX
    assert found.faults == (Blocker(BlockerCode.DEPENDENCY_LOST, "many"),)


def test_a_long_description_is_read_in_one_pass():
    hidden = "<!--" * 60_000 + "\n" + "Depends-On: #1\n" * 10 + "-->"
    assert descriptions.lines_of(hidden) == Lines()
    for text in ("`" * 60_000, "` `` " * 12_000, "<!-- `\n" * 9_000, "```\n" * 15_000):
        assert descriptions.lines_of(text) == Lines()
