"""The judgement as values: what git prints, what is declared, and properties of all histories."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.gitbuild import patches
from bot.github.gitbuild.command import GitFailed
from service.landed_work import GENERATED, Declaration
from service.provider.undoing.changes import Content, FileChange, Hunk, key_of
from service.provider.undoing.generated import written
from service.provider.undoing.ledger import Ledger
from service.vocabulary import RepoRef, Sha
from tests.provider.undone import between, landing, lines

REPO = RepoRef("github.com", "octo", "widgets")
OLD, NEW = Sha("a" * 40), Sha("b" * 40)

PRINTED = (
    b"\0%b\x001700000000\0Ann \xc3\x84\0Subject (#7)\n\nbody\n\0\0\n"
    b":100644 100755 %b %b M\0odd \xff\n@@ -1 +1 @@\0"
    b":100644 100644 %b %b R090\0old.py\0new.py\0"
    b":000000 160000 %b %b A\0module\0"
    b"\0diff --git a/x b/x\nold mode 100644\nnew mode 100755\nindex aaa..bbb\n--- a/x\n+++ b/x\n"
    b"@@ -1,2 +1 @@ diff --git a/y b/y\n-@@ -1 +1 @@\n-diff --git a/y b/y\n"
    b"\\ No newline at end of file\n+\0\r\n\\ No newline at end of file\n"
    b"@@ -9,0 +9,2 @@\n+-- a/x\n+++ b/x\n"
    b"diff --git a/old.py b/new.py\nsimilarity index 90%%\nindex aaa..bbb 100644\n"
    b"Binary files a/old.py and b/new.py differ\n"
    b"diff --git a/module b/module\nindex 000..bbb\n--- /dev/null\n+++ b/module\n"
    b"@@ -0,0 +1 @@\n+Subproject commit bbb\n"
    b"\0\0%b\x001700000001\0Bob\0empty\n\0"
)


def test_a_log_is_read_whatever_lines_and_names_look_like():
    old, new = OLD.encode(), NEW.encode()
    first, second = patches.landings_of(PRINTED % (new, *([old, new] * 3), old))
    assert (first.commit, first.author, first.at_s) == (NEW, "Ann Ä", 1_700_000_000)
    assert first.message == "Subject (#7)\n\nbody\n"
    assert first.files == (
        FileChange(
            b"odd \xff\n@@ -1 +1 @@",
            b"odd \xff\n@@ -1 +1 @@",
            Content("100644", OLD),
            Content("100755", NEW),
            (
                Hunk((b"@@ -1 +1 @@", b"diff --git a/y b/y"), (b"\0\r",)),
                Hunk((), (b"-- a/x", b"++ b/x")),
            ),
        ),
        FileChange(b"new.py", b"old.py", Content("100644", OLD), Content("100644", NEW)),
        FileChange(b"module", b"module", None, Content("160000", NEW)),
    )
    assert (second.commit, second.files) == (OLD, ())


def test_a_patch_that_is_cut_off_is_no_answer():
    with pytest.raises(GitFailed):
        patches.change_of(b":100644 100644 a b M\0x\0\0diff --git a/x b/x\n@@ bad\n")


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b"\t return  1 ;\r", b"return1;"),
        (b"  });", b""),
        (b"", b""),
        ("  é".encode(), "é".encode()),
    ],
)
def test_blanks_and_lone_punctuation_are_not_compared(line, key):
    assert key_of(line) == key


@pytest.mark.parametrize(
    ("text", "commits", "number"),
    [
        (f'Revert "x"\n\nThis reverts commit {OLD}.', [OLD], None),
        (f"This reverts commit {OLD[:8]}, reversing\nchanges made to {NEW}.", [NEW, OLD], None),
        (f'Reapply "x"\n\nThis reverts commit {OLD}.', [OLD], None),
        ("Reverts octo/widgets#7", [NEW], 7),
        ('Revert "x"', [NEW], None),
        ('Revert "x (#7)" (#8)\r\n\r\nbecause', [NEW], None),
        ("reverts Octo/Widgets#7\n\nbecause", [NEW], 7),
        ("Reverts #7", [NEW], 7),
    ],
)
def test_a_declared_revert_is_known_by_the_sentences_of_git_and_github(text, commits, number):
    assert Declaration.of([text], REPO).names(commits, number, "x (#7)")


@pytest.mark.parametrize(
    "text",
    [
        "Revert the refund",
        "Reverts octo/other#7",
        'Revert "x and y"',
        'Reapply "y"',
        'It was: Revert "y"',
        "Reverts #77",
        "It never Reverts #7",
        f"This reverts commit {NEW}.",
        "This reverts commit aaaaaa.",
        "",
    ],
)
def test_a_declaration_of_something_else_covers_nothing(text):
    assert not Declaration.of([text], REPO).names([OLD], 7, "y")


def test_a_revert_that_is_reverted_is_named_by_its_title():
    for text in ('Reapply "x"', 'Revert "Revert "x""', 'Revert "Revert "x (#7)" (#8)" (#9)'):
        title = 'Revert "x (#7)" (#8)' if "#7" in text else 'Revert "x"'
        assert Declaration.of([text], REPO).names([OLD], None, title), text
        assert not Declaration.of([text], REPO).names([OLD], None, "x"), text


def test_a_landing_without_a_pull_request_is_named_by_its_commit_alone():
    assert not Declaration().names([OLD], None, "")
    assert Declaration(numbers=frozenset({7})).names([OLD], 7, "y")


@pytest.mark.parametrize(
    ("path", "is_written"),
    [
        ("package-lock.json", False),
        ("web/yarn.lock", False),
        ("api/x_pb2.py", False),
        ("src/package-lock.json.py", True),
        ("vendored/x.py", True),
        ("lock", True),
    ],
)
def test_lock_files_and_the_like_are_left_out(path, is_written):
    change = between({}, {path: "x\n"})
    assert written(change, GENERATED) == (change if is_written else ())


NAMES = st.sampled_from(["a.py", "b.py", "c/d.py"])
TEXTS = st.lists(st.integers(0, 30), max_size=12).map(lambda each: lines(*each))
TREES = st.dictionaries(NAMES, TEXTS, max_size=3)
HISTORIES = st.lists(TREES, min_size=2, max_size=6)


def ledger_of(trees):
    """A ledger of landings that lead from tree to tree."""
    ledger = Ledger()
    for number, (before, after) in enumerate(pairwise(trees)):
        ledger.add(landing(number, between(before, after)))
    return ledger


def named(undone):
    """What is undone, apart from names of files."""
    return [(each.landing.commit, each.lines, each.standing, each.shown) for each in undone]


@given(HISTORIES, st.data())
def test_a_change_that_only_adds_new_lines_never_alarms(trees, data):
    tip = trees[-1]
    grown = {}
    for path, text in tip.items():
        rows = text.splitlines(keepends=True)
        for _ in range(data.draw(st.integers(0, 3))):
            place = data.draw(st.integers(0, len(rows)))
            rows.insert(place, lines(data.draw(st.integers(100, 200))))
        grown[path] = "".join(rows)
    grown["new.py"] = lines(*range(100, 105))
    assert ledger_of(trees).undone_by(between(tip, grown)) == ()


@given(HISTORIES)
def test_taking_back_the_newest_landing_names_it_alone_and_so_can_be_declared(trees):
    *before, last, tip = trees
    undone = ledger_of(trees).undone_by(between(tip, last))
    newest = f"{len(before):040x}"
    assert {each.landing.commit for each in undone} <= {newest}
    says = Declaration.of([f"This reverts commit {newest}."], REPO)
    assert all(says.names([each.landing.commit], None, "") for each in undone)


@given(HISTORIES, TREES)
def test_a_change_is_judged_equally_after_its_files_have_moved(trees, result):
    tip = trees[-1]
    plain = ledger_of(trees)
    judged = plain.undone_by(between(tip, {path: result.get(path, tip[path]) for path in tip}))
    moved = {f"moved/{path}": path for path in tip}
    there = {new: tip[old] for new, old in moved.items()}
    after = ledger_of(trees)
    after.add(landing(99, between(tip, there, moved)))
    change = between(there, {new: result.get(old, tip[old]) for new, old in moved.items()})
    assert named(after.undone_by(change)) == named(judged)


@given(HISTORIES, TREES)
def test_what_stands_is_counted_right(trees, result):
    """No landing loses more lines than it has, and none stands for lines that are not there."""
    ledger = ledger_of(trees)
    undone = ledger.undone_by(between(trees[-1], result))
    for each in undone:
        assert 0 <= each.lines <= each.standing
        rows = sum(len(text.splitlines()) for text in trees[-1].values())
        assert each.standing <= rows
