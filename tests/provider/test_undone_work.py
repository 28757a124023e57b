"""A pull request that takes back merged work is seen, and one that does not is left alone.

Each test lands something and asks about a pull request whose base is the tip, in a real
repository. Rules: docs/design/undone-work.md.
"""

from dataclasses import replace

import pytest

from bot.github.gitbuild.command import GitFailed
from bot.github.gitbuild.undoing import Landings
from service.landed_work import Declaration
from service.vocabulary import RepoRef, Sha
from tests.provider.undone import Branch, lines

REPO = RepoRef("github.com", "octo", "widgets")
BASE = lines(*range(40))
ADDED = lines("refund", "limit", "audit", "ledger", "receipt")


def with_work(text=BASE, work=ADDED, place=10):
    """The text with work in its middle."""
    rows = text.splitlines(keepends=True)
    return "".join([*rows[:place], work, *rows[place:]])


@pytest.fixture
def branch(tmp_path):
    return Branch(tmp_path / "it.git", {"a.py": BASE, "b.py": lines("b"), "other/c.py": BASE})


async def test_a_file_with_the_bytes_of_before_undoes_the_landing(branch):
    landed = branch.land({"a.py": with_work()})
    [undone] = await branch.undone_by({"a.py": BASE})
    assert (undone.landing.commit, undone.paths) == (landed, (b"a.py",))
    assert (undone.lines, undone.standing, undone.returned) == (5, 5, 1)
    assert undone.shown[0] == b"    refund = compute('refund')"


async def test_own_work_beside_it_hides_nothing(branch):
    landed = branch.land({"a.py": with_work()})
    own = with_work(BASE, lines("mine", "own"), place=30)
    assert await branch.named({"a.py": own, "n.py": lines("new")}) == [landed]


async def test_own_work_in_the_very_place_stands_for_as_many_lines(branch):
    landed = branch.land({"a.py": with_work(work=lines(*"abcdefghij"))})
    assert await branch.named({"a.py": with_work(work=lines("mine", "own"))}) == [landed]
    assert await branch.named({"a.py": with_work(work=lines("mine", "own", "too"))}) == []


async def test_a_stale_tree_undoes_each_landing_since(branch):
    first = branch.land({"a.py": with_work(), "b.py": lines("b", "c", "d", "e")})
    second = branch.land({"other/c.py": with_work(place=5)})
    third = branch.land({"a.py": with_work(with_work(), lines(*"xyz"), place=35)})
    stale = {"a.py": BASE, "b.py": lines("b"), "other/c.py": BASE, "mine.py": lines("mine")}
    assert await branch.named(stale) == [third, second, first]


async def test_only_landings_since_the_given_commit_count(branch):
    first = branch.land({"a.py": with_work()})
    assert await branch.named({"a.py": BASE}) == [first]
    assert await branch.named({"a.py": BASE}, after=first) == []


async def test_a_landing_of_which_a_fifth_or_more_stays_is_not_undone(branch):
    branch.land({"a.py": with_work(), "d.py": lines(*"vwxyz")})
    assert await branch.named({"a.py": with_work(BASE, lines("refund"), place=10)}) == []


async def test_one_stale_file_of_many_is_undone_whatever_else_it_gains(branch):
    changed = with_work(BASE.replace(lines(5, 6, 7), lines("five", "six", "seven")))
    landed = branch.land({"a.py": changed, "d.py": lines(*range(100, 200))})
    stale = with_work(BASE, lines("mine", "own"), place=30)
    [undone] = await branch.undone_by({"a.py": stale})
    assert (undone.landing.commit, undone.lines, undone.standing) == (landed, 8, 108)
    assert await branch.named({"a.py": with_work(changed, lines("own"), place=30)}) == []


async def test_lines_that_a_later_landing_took_do_not_count(branch):
    landed = branch.land({"a.py": with_work(), "d.py": lines(*range(50))})
    branch.land({"d.py": None, "e.py": lines(*"pqrs")}, "rewrite d")
    [undone] = await branch.undone_by({"a.py": with_work(BASE, lines("mine"), place=30)})
    assert (undone.landing.commit, undone.lines, undone.standing) == (landed, 5, 5)


async def test_a_pull_request_that_only_adds_undoes_nothing(branch):
    branch.land({"a.py": with_work()})
    more = with_work(with_work(), lines("more", "and", "more"), place=20)
    assert await branch.named({"a.py": more, "n.py": lines(*"new")}) == []


async def test_lines_that_are_rewritten_are_not_undone(branch):
    branch.land({"a.py": with_work()})
    rewritten = with_work(work=lines("refund2", "limit2", "audit2", "ledger2", "receipt2"))
    assert await branch.named({"a.py": rewritten}) == []


async def test_a_version_that_moves_on_undoes_nothing(branch):
    branch.land({"v": "version = 2\n"})
    branch.land({"v": "version = 3\n"})
    assert await branch.named({"v": "version = 4\n"}) == []


async def test_a_version_that_moves_back_undoes_the_landing(branch):
    branch.land({"v": "version = 2\n"})
    landed = branch.land({"v": "version = 3\n"})
    assert await branch.named({"v": "version = 2\n"}) == [landed]


async def test_a_line_that_goes_back_in_one_file_of_many_is_not_enough(branch):
    branch.land({"a.py": with_work(), "v": "version = 2\n"})
    branch.land({"b.py": lines(*range(9)), "other/c.py": with_work(), "v": "version = 3\n"})
    assert await branch.named({"v": "version = 2\n"}) == []


@pytest.mark.parametrize("name", ["z.py", "deep/down/z.py"])
async def test_a_file_that_moves_undoes_nothing(branch, name):
    branch.land({"a.py": with_work()})
    assert await branch.named({"a.py": None, name: with_work()}) == []


async def test_a_landing_is_found_under_the_new_name_of_its_file(branch):
    landed = branch.land({"a.py": with_work()})
    branch.land({"a.py": None, "z.py": with_work()}, "move")
    branch.land({"z.py": None, "y.py": with_work()}, "move again")
    assert await branch.named({"y.py": BASE}) == [landed]


async def test_code_that_moves_to_another_file_is_not_undone(branch):
    branch.land({"a.py": with_work()})
    assert await branch.named({"a.py": BASE, "other/c.py": with_work()}) == []


async def test_other_line_ends_and_indents_undo_nothing(branch):
    branch.land({"a.py": with_work()})
    assert await branch.named({"a.py": with_work().replace("\n", "\r\n")}) == []
    assert await branch.named({"a.py": with_work().replace("    ", "\t")}) == []


async def test_a_formatter_that_splits_and_joins_lines_undoes_nothing(branch):
    work = "".join(f"call({name}, {name}2, {name}3)\n" for name in "abcdef")
    branch.land({"a.py": with_work(work=work)})
    split = work.replace("(", "(\n    ").replace(", ", ",\n    ").replace(")", ",\n)")
    assert await branch.named({"a.py": with_work(work=split)}) == []
    branch.land({"a.py": with_work(work=split)})
    assert await branch.named({"a.py": with_work(work="".join(split.split()) + "\n")}) == []


async def test_a_file_that_is_written_anew_under_another_name_is_not_undone(branch):
    branch.land({"tool.py": lines(*range(30))})
    assert await branch.named({"tool.py": None, "tool.rs": lines(*range(100, 140))}) == []


async def test_a_file_that_only_goes_away_is_undone(branch):
    landed = branch.land({"tool.py": lines(*range(30))})
    assert await branch.named({"tool.py": None}) == [landed]


async def test_a_landing_of_few_lines_is_undone_with_all_of_its_files(branch):
    landed = branch.land({"b.py": lines("b2"), "changelog/7.md": "It is b2.\n"})
    assert await branch.named({"b.py": lines("b"), "changelog/7.md": None}) == [landed]
    assert await branch.named({"changelog/7.md": None}) == []


async def test_a_deleted_file_that_comes_back_undoes_the_deletion(branch):
    landed = branch.land({"a.py": None})
    assert await branch.named({"a.py": BASE}) == [landed]


BINARY = b"\0\1\2" * 100


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BINARY, BINARY + b"\3"),
        (("100644", "run\n"), ("100755", "run\n")),
        (("120000", "a.py"), ("120000", "b.py")),
        (("120000", "a.py"), ("100644", "a.py")),
        (("160000", "1" * 40), ("160000", "2" * 40)),
    ],
    ids=["binary", "executable", "link", "link to file", "submodule"],
)
async def test_contents_without_lines_go_back(tmp_path, before, after):
    branch = Branch(tmp_path / "it.git", {"x": before, "a.py": BASE})
    landed = branch.land({"x": after, "a.py": with_work()})
    assert await branch.named({"x": before}) == [landed]
    branch.land({"x": before})
    assert await branch.named({"a.py": with_work(with_work(), place=30)}) == []


@pytest.mark.parametrize("path", ["package-lock.json", "web/Cargo.lock", "x/vendor/lib.c"])
async def test_files_that_programs_write_do_not_count(branch, path):
    branch.land({path: lines(1)})
    branch.land({path: lines(*range(20))})
    assert await branch.named({path: lines(1)}) == []


async def test_a_landing_by_a_merge_commit_is_one_landing(branch):
    landed = branch.land_merge(branch.head({"a.py": with_work()}))
    branch.land({"b.py": lines("b", "x")})
    assert await branch.named({"a.py": BASE}) == [landed]
    commits = await branch.landings.commits_of(landed)
    assert commits[0] == landed
    assert len(commits) == 2


async def test_a_base_that_is_old_undoes_nothing_by_itself(branch):
    old = branch.head({"b.py": lines("b", "mine", "own", "work")})
    branch.land({"a.py": with_work()})
    assert await branch.landings.undone_by(branch.question(old)) == ()


@pytest.mark.parametrize(
    "name", ["*.py", ":(top)a.py", 'q"uote', "--upload-pack", "bad\udcff.py", "$(x)"]
)
async def test_odd_names_of_files_are_names(branch, name):
    branch.land({"a.py": with_work()})
    branch.land({name: BASE})
    landed = branch.land({name: with_work()})
    assert await branch.named({name: BASE}) == [landed]


async def test_a_name_with_a_line_end_is_left_out(branch):
    branch.land({"x\n^HEAD": BASE})
    branch.land({"x\n^HEAD": with_work()})
    landed = branch.land({"a.py": with_work()})
    assert await branch.named({"x\n^HEAD": BASE, "a.py": BASE}) == [landed]


async def test_an_id_that_could_be_anything_else_enters_no_command(branch):
    question = branch.question(branch.head({"a.py": BASE + "x\n"}))
    for field in ("tip", "result", "head", "after"):
        with pytest.raises(GitFailed):
            replace(question, **{field: "--output=x"})


async def test_contents_are_compared_where_lines_are_too_many(branch):
    """Half a megabyte cannot be read here, and names of files can."""
    huge = lines(*range(10_000))
    landed = branch.land({"a.py": with_work(), "huge.py": huge})
    branch.landings = replace(branch.landings, output_max=1 << 20)
    assert await branch.named({"a.py": BASE, "huge.py": None}) == [landed]
    branch.landings = replace(branch.landings, output_max=400_000)
    branch.land({"huge.py": lines(1), "b.py": lines(*"bcdef")}, "smaller")
    landed = branch.land({"b.py": lines("b")})
    assert await branch.named({"b.py": lines(*"bcdef")}) == [landed]


async def test_a_mirror_without_contents_compares_their_ids_and_fetches_nothing(branch, tmp_path):
    landed = branch.land({"a.py": with_work()})
    stale, same = branch.head({"a.py": BASE}), branch.head({"a.py": with_work()}, branch.first)
    edited = branch.head({"a.py": with_work(with_work(), place=30)})
    questions = [branch.question(head) for head in (stale, edited, same)]
    # Packed apart, and without the contents: whoever reads one fails.
    bare = tmp_path / "it.blobless.git"
    trees = [question.result for question in questions]
    wanted = "".join(f"{each}\n" for each in (branch.tip, *trees, stale, same))
    pack = ("pack-objects", "-q", "--revs", "--filter=blob:none", "--stdout")
    packed = branch.git(*pack, feed=wanted, keep=True)
    branch.git(f"--git-dir={bare}", "init", "-q", "--bare", "--template=")
    branch.git(f"--git-dir={bare}", "index-pack", "--stdin", feed=packed)
    landings = Landings(replace(branch.landings.mirror, folder=bare))
    undone = [await landings.undone_by(question) for question in questions]
    assert [[each.landing.commit for each in found] for found in undone] == [[landed], [], []]
    assert await landings.landed_already(questions[1]) is None
    found = await landings.landed_already(questions[2])
    assert found is not None
    assert found.landing is not None
    assert found.landing.commit == landed


async def test_work_that_has_landed_is_seen_when_nothing_is_left_of_it(branch):
    own = branch.head({"a.py": with_work()})
    other = branch.land({"b.py": lines("b", "x")})
    landed = branch.land({"a.py": with_work(), "n.py": lines("n")}, "the same by another")
    branch.land({"b.py": lines("b", "y")})
    found = await branch.landed_already(own)
    assert found.landing.commit == landed != other
    assert not found.stands_twice


async def test_a_cherry_pick_of_what_landed_has_landed_already(branch):
    work = branch.head({"a.py": with_work()})
    other = branch.land({"b.py": lines("b", "x")})
    landed = branch.land_merge(work)
    picked = branch.head({"a.py": with_work()}, base=other)
    assert (await branch.landed_already(picked)).landing.commit == landed


async def test_work_that_landed_at_another_place_would_stand_twice(branch):
    own = branch.head({"a.py": with_work(place=5)})
    landed = branch.land({"a.py": with_work(place=30)})
    found = await branch.landed_already(own)
    assert (found.landing.commit, found.stands_twice) == (landed, True)


async def test_a_part_of_what_landed_may_be_added_at_another_place_too(branch):
    own = branch.head({"a.py": with_work(work=lines("refund", "limit", "audit"), place=5)})
    branch.land({"a.py": with_work(place=30)})
    assert await branch.landed_already(own) is None


async def test_work_that_adds_to_what_landed_has_not_landed(branch):
    own = branch.head({"a.py": with_work(), "n.py": lines("more")})
    branch.land({"a.py": with_work()})
    assert await branch.landed_already(own) is None


async def test_lines_that_stood_before_any_landing_may_be_added_again(branch):
    own = branch.head({"a.py": with_work(work=lines(1, 2, 3))})
    branch.land({"b.py": lines("b", "x")})
    assert await branch.landed_already(own) is None


async def test_work_that_takes_lines_out_has_not_landed(branch):
    own = branch.head({"a.py": BASE.replace(lines(20), "")})
    branch.land({"b.py": lines("b", "x")})
    assert await branch.landed_already(own) is None


async def test_a_change_of_line_ends_alone_has_not_landed(branch):
    branch.land({"a.py": with_work()})
    crlf = branch.head({"a.py": with_work().replace("\n", "\r\n")})
    assert await branch.landed_already(crlf) is None


async def test_a_head_that_changes_nothing_has_not_landed(branch):
    branch.land({"a.py": with_work()})
    assert await branch.landed_already(branch.head({})) is None


async def test_work_that_was_undone_may_land_again(branch):
    own = branch.head({"a.py": with_work()})
    branch.land({"a.py": with_work()})
    branch.land({"a.py": BASE}, "revert")
    assert await branch.landed_already(own) is None


async def test_work_on_lock_files_alone_has_landed_when_they_are_equal(branch):
    own = branch.head({"x.lock": lines(*range(5))})
    landed = branch.land({"x.lock": lines(*range(5))})
    assert (await branch.landed_already(own)).landing.commit == landed


async def test_work_that_landed_long_ago_has_landed_by_an_unknown_landing(branch):
    own = branch.head({"a.py": with_work()})
    long_ago = branch.land({"a.py": with_work()})
    branch.land({"b.py": lines("b", "x")})
    found = await branch.landings.landed_already(branch.question(own, after=long_ago))
    assert found is not None
    assert found.landing is None


async def test_a_revert_by_git_names_each_landing_that_it_takes_back(branch):
    landed = branch.land({"a.py": with_work()})
    [undone] = await branch.undone_by({"a.py": BASE})
    says = Declaration.of([f'Revert "x"\n\nThis reverts commit {landed}.\n'], REPO)
    assert says.names(await branch.landings.commits_of(undone.landing.commit), None, "")


async def test_a_revert_of_a_commit_inside_a_merge_names_the_merge(branch):
    head = branch.head({"a.py": with_work()})
    branch.land_merge(head)
    [undone] = await branch.undone_by({"a.py": BASE})
    says = Declaration.of([f"This reverts commit {head}."], REPO)
    assert says.names(await branch.landings.commits_of(undone.landing.commit), None, "")


async def test_a_revert_of_a_revert_takes_back_the_revert_alone(branch):
    branch.land({"a.py": with_work(), "d.py": lines(*"vwxyz")})
    reverted = branch.land({"a.py": BASE, "d.py": None}, "revert")
    assert await branch.named({"a.py": with_work(), "d.py": lines(*"vwxyz")}) == [reverted]


async def test_landings_that_took_back_one_another_are_not_undone_once_more(branch):
    first = branch.land({"a.py": with_work()})
    branch.land({"a.py": with_work(with_work(), lines(*"xyz"), place=30)})
    branch.land({"a.py": with_work()}, "revert")
    assert await branch.named({"a.py": BASE}) == [first]


async def test_a_revert_declares_no_other_landing_that_a_stale_tree_takes_back(branch):
    first = branch.land({"a.py": with_work()})
    second = branch.land({"b.py": lines("b", "c", "d", "e")})
    undone = await branch.undone_by({"a.py": BASE, "b.py": lines("b")})
    says = Declaration.of([f"This reverts commit {first}."], REPO)
    left = [
        each.landing.commit for each in undone if not says.names([each.landing.commit], None, "")
    ]
    assert left == [second]


async def test_a_landing_without_a_date_that_git_can_read_counts(branch):
    branch.land({"a.py": with_work()})
    text = branch.git("cat-file", "commit", branch.tip, keep=True)
    undated = text.replace("committer ann <ann@example.org> 1 +0000", "committer ann <ann> x")
    branch.tip = Sha(
        branch.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", feed=undated)
    )
    assert await branch.named({"a.py": BASE}) == [branch.tip]
