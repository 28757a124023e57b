"""Rules for conflicts in append-only files: docs/design/conflicts.md 5."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.provider.resolving import ADDED_MAX, BYTES_MAX, resolved, rule_for
from service.vocabulary import ConflictRule, Resolution

EACH_RULE = pytest.mark.parametrize("rule", list(Resolution))
LOG = b"# Changes\n\n## Unreleased\n\n### Fixed\n\n- old\n\n## 1.0\n\n- first\n"
LINES = st.lists(st.sampled_from([b"## A", b"### B", b"- a", b"- b", b"- c", b""]), max_size=7)


def added(base: list[bytes], chance) -> list[bytes]:
    """The same lines with some more between them."""
    more = chance.draw(st.lists(LINES, min_size=len(base) + 1, max_size=len(base) + 1))
    lines = [*more[0]]
    for line, after in zip(base, more[1:], strict=True):
        lines += [line, *after]
    return lines


def text(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def is_within(part: bytes, whole: bytes) -> bool:
    """Whether the lines of a text are in another one, in their order."""
    rest = iter(whole.splitlines())
    return all(line in rest for line in part.splitlines())


@EACH_RULE
@given(base=LINES, chance=st.data())
def test_no_line_of_either_side_is_lost_and_none_is_doubled(rule, base, chance):
    ours, theirs = text(added(base, chance)), text(added(base, chance))
    made = resolved(rule, text(base), ours, theirs)
    assert made == resolved(rule, text(base), ours, theirs)
    if made is None:
        return
    assert is_within(ours, made)
    assert is_within(theirs, made)
    counts = [Counter(each.splitlines()) for each in (made, ours, theirs)]
    for line, count in counts[0].items():
        of_base = base.count(line)
        assert count <= counts[1][line] + counts[2][line] - of_base


@given(base=LINES, one=LINES, other=LINES)
def test_both_orders_give_the_same_lines(base, one, other):
    ours, theirs = text([*one, *base]), text([*base, *other])
    there, back = (
        resolved(Resolution.UNION, text(base), *sides) for sides in ((ours, theirs), (theirs, ours))
    )
    assert (there is None) == (back is None)
    if there is not None and back is not None:
        assert Counter(there.splitlines()) == Counter(back.splitlines())


@EACH_RULE
@given(base=LINES, chance=st.data())
def test_a_side_that_adds_nothing_gives_the_other_one(rule, base, chance):
    other = text(added(base, chance))
    assert resolved(rule, text(base), text(base), other) == other
    assert resolved(rule, text(base), other, text(base)) == other


@EACH_RULE
def test_entries_of_both_sides_are_kept_ours_first(rule):
    ours, theirs = (LOG.replace(b"- old", b"- %b\n- old" % name) for name in (b"one", b"two"))
    made = resolved(rule, LOG, ours, theirs)
    assert made == LOG.replace(b"- old", b"- one\n- two\n- old")


@EACH_RULE
def test_a_heading_that_both_sides_add_is_there_once(rule):
    base = b"## Unreleased\n\n## 1.0\n"
    ours, theirs = (
        b"## Unreleased\n\n### Added\n\n- %b\n\n## 1.0\n" % name for name in (b"one", b"two")
    )
    made = resolved(rule, base, ours, theirs)
    assert made is not None
    assert made.count(b"### Added") == 1
    assert [line for line in made.splitlines() if line.startswith(b"-")] == [b"- one", b"- two"]


def test_an_entry_stays_below_its_heading_when_the_other_side_has_released():
    base = b"## Unreleased\n- old\n"
    ours = b"## Unreleased\n\n## 1.0\n- old\n"
    theirs = b"## Unreleased\n- new\n- old\n"
    made = resolved(Resolution.CHANGELOG, base, ours, theirs)
    assert made == b"## Unreleased\n- new\n\n## 1.0\n- old\n"
    below = b"## Unreleased\n- old\n- new\n"
    assert resolved(Resolution.CHANGELOG, base, ours, below) is None
    assert resolved(Resolution.UNION, base, ours, below) is not None


@pytest.mark.parametrize("mark", [b"=====", b"-----"])
def test_headings_that_are_underlined_count(mark):
    base = b"Next\n" + mark + b"\n- old\n"
    ours = b"Next\n" + mark + b"\n\n1.0\n" + mark + b"\n- old\n"
    theirs = base.replace(b"- old", b"- new\n- old")
    made = resolved(Resolution.CHANGELOG, base, ours, theirs)
    assert made is not None
    assert made.index(b"- new") < made.index(b"1.0")


@EACH_RULE
@pytest.mark.parametrize(
    "theirs",
    [
        LOG.replace(b"- old", b"- older"),
        LOG.replace(b"- old\n", b""),
        LOG.replace(b"- old", b"- new\n- old").replace(b"- first", b"- 1st"),
        LOG.replace(b"- old", b"- \0\n- old"),
        LOG + b"- x\n" * (ADDED_MAX + 1),
        LOG + b"x" * BYTES_MAX,
        b"",
    ],
)
def test_what_is_more_than_added_lines_stays_a_conflict(rule, theirs):
    ours = LOG.replace(b"- old", b"- own\n- old")
    assert resolved(rule, LOG, ours, theirs) is None
    assert resolved(rule, LOG, theirs, ours) is None


@EACH_RULE
def test_a_line_that_both_add_at_different_places_stays_a_conflict(rule):
    ours = LOG.replace(b"- old", b"- same\n- old")
    assert resolved(rule, LOG, ours, LOG.replace(b"- old", b"- old\n- same")) is None


@EACH_RULE
def test_letters_of_every_alphabet_make_a_line_an_entry(rule):
    entry = "- исправлено\n".encode()
    ours = LOG.replace(b"- old\n", entry + b"- old\n")
    assert resolved(rule, LOG, ours, LOG.replace(b"- old\n", b"- old\n" + entry)) is None


def test_an_entry_in_any_alphabet_stays_below_its_heading():
    base = "## Next\n- старое\n".encode()
    ours = "## Next\n\n## 1.0\n- старое\n".encode()
    theirs = "## Next\n- новое\n- старое\n".encode()
    made = resolved(Resolution.CHANGELOG, base, ours, theirs)
    assert made == "## Next\n- новое\n\n## 1.0\n- старое\n".encode()


@EACH_RULE
def test_the_second_line_of_an_entry_is_not_that_of_another_entry(rule):
    ours, theirs = (
        LOG.replace(b"- old", b"- %b\n  by Ann\n- old" % name) for name in (b"one", b"two")
    )
    assert resolved(rule, LOG, ours, theirs) is None
    entry = b"- same\n  by Ann\n- old"
    ours, theirs = (LOG.replace(b"- old", b"- %b\n" % name + entry) for name in (b"one", b"two"))
    made = resolved(rule, LOG, ours, theirs)
    assert made == LOG.replace(b"- old", b"- one\n- two\n" + entry)


@EACH_RULE
def test_a_last_line_without_an_end_counts_as_one_where_lines_end_by_two_characters(rule):
    base = b"- a\r\n- b"
    assert resolved(rule, base, base + b"\r\n- c", base + b"\r\n- c\r\n- d\r\n") == (
        b"- a\r\n- b\r\n- c\r\n- d\r\n"
    )
    assert resolved(rule, base, base + b"\r\n- c", base + b"\r\n- d") == (
        b"- a\r\n- b\r\n- c\r\n- d"
    )


@EACH_RULE
def test_lines_that_end_in_two_ways_stay_a_conflict(rule):
    ours = LOG.replace(b"- old", b"- new\r\n- old")
    assert resolved(rule, LOG, ours, LOG.replace(b"- old", b"- new\n- other\n- old")) is None


@EACH_RULE
def test_much_that_both_add_at_many_places_stays_a_conflict(rule):
    base = b"".join(b"- %d\n" % at for at in range(200))
    ours, theirs = (
        b"".join(b"- %d\n" % at + b"".join(b"- %b\n" % mark for mark in marks) for at in range(200))
        for marks in ((b"a", b"b") * 20, (b"b", b"c") * 20)
    )
    assert resolved(rule, base, ours, base) == ours
    assert resolved(rule, base, ours, theirs) is None


@EACH_RULE
def test_a_last_line_without_an_end_counts_as_any_other(rule):
    made = resolved(rule, b"- a", b"- a\n- b", b"- a\n- c")
    assert made == b"- a\n- b\n- c"
    assert resolved(rule, b"- a", b"- a\n- b", b"- a\n- c\n") == b"- a\n- b\n- c\n"


def test_the_first_rule_with_a_glob_for_the_path_counts():
    rules = (
        ConflictRule(("CHANGELOG.md", "docs/*.md"), Resolution.CHANGELOG),
        ConflictRule(("*.md",), Resolution.UNION),
    )
    asked = ("pkg/CHANGELOG.md", "docs/a/b.md", "README.md", "a.py")
    assert [rule_for(rules, path) for path in asked] == [
        Resolution.CHANGELOG,
        Resolution.CHANGELOG,
        Resolution.UNION,
        None,
    ]
