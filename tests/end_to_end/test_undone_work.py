"""Pull requests that would take back merged work: they wait, say so, or land when it is meant.

Over the sandbox with git's own merges. Rules: docs/design/undone-work.md.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.operations import explain, undone_work
from service.mergequeue.wording import conditions
from service.vocabulary import MergeMethod
from tests.end_to_end.test_stacks import head_of, said_on
from tests.harness import gates
from tests.harness.world import World, WorldOptions

BY_GIT = WorldOptions(settings={"build_method": "git"})
GATED = WorldOptions(ci=gates.CI, settings={"build_method": "git"})


def lines(word: str, count: int = 12) -> str:
    return "".join(f"{word} line {number} = {number}\n" for number in range(count))


Files = dict[str, str | None]
OLD = lines("old")
NEW = OLD + lines("refund", 8)
UTIL = lines("util")
BETTER = UTIL.replace("util line 3", "better line 3") + lines("cache", 6)
WORK: Files = {"app.py": NEW, "util.py": BETTER, "refunds.py": lines("made")}


@pytest.fixture
def world_options() -> WorldOptions:
    """Every test branch is built by git; the first one waits for the mirror."""
    return BY_GIT


async def push(world: World, files: Files, message: str = "a push") -> str:
    made = await world.act("push", branch="main", files=files, message=message, bypass=True)
    await world.settle()
    return str(made.get("sha") or world.repository.git.branch("main"))


async def began(world: World, **settings: Any) -> None:
    """A queue with files on its branch."""
    await world.make_queue(**settings)
    await push(world, {"app.py": OLD, "util.py": UTIL})


async def lands(world: World, files: Files, title: str = "Refund orders") -> int:
    number = await world.open(by="alice", files=files, title=title, fresh=True)
    await world.comment("/merge", on=number, by="alice")
    await world.settle()
    assert await world.state(number) == "MERGED"
    return number


async def asked(world: World, files: Files, **more: str) -> int:
    """A pull request that somebody submits, with the files of its head; its number."""
    number = await world.open(files=files, by="bob", fresh=True, **more)
    await world.comment("/merge", on=number)
    await world.settle()
    return number


async def is_held(world: World, number: int) -> bool:
    entry = await world.entry(number)
    return Reason.UNDOES_LANDED_WORK in entry.unmet and entry.state.value == "NOT_READY"


STALE: dict[str, tuple[Files, Files]] = {
    "a stale squash": (WORK, {"app.py": OLD, "util.py": UTIL, "refunds.py": None}),
    "one stale file of many": (WORK, {"app.py": OLD, "a.py": lines("a"), "b.py": lines("b")}),
    "a deletion": ({"refunds.py": lines("made")}, {"refunds.py": None, "d.py": lines("d", 2)}),
    "a line or two": ({"app.py": OLD + "more = 1\n"}, {"app.py": OLD, "d.py": lines("d")}),
}
"""What lands, and what a stale pull request makes of it."""


@pytest.mark.parametrize("method", [pytest.param("SQUASH", marks=pytest.mark.soak), "MERGE_COMMIT"])
@pytest.mark.parametrize("planted", STALE.values(), ids=STALE)
async def test_what_takes_back_merged_work_waits_and_both_authors_are_told(
    planted: tuple[Files, Files], method: str, world: World
) -> None:
    work, files = planted
    await began(world, merge_method=MergeMethod(method))
    landed = await lands(world, work)
    tip = world.repository.git.branch("main")
    number = await asked(world, files, title="Tidy up")
    assert await is_held(world, number)
    assert world.repository.git.branch("main") == tip
    told = world.comment_on(number)
    assert f"`#{landed}`" in told
    assert "Refund orders" in told
    assert f"`/merge --undoes #{landed}`" in told
    assert f"`#{number}` by `bob` would take back work" in said_on(world, landed)
    await world.comment("/merge", on=number)
    await world.settle()
    assert said_on(world, landed).count("would take back work") == 1
    await world.comment(f"/merge --undoes #{landed}", on=number)
    await world.settle()
    assert await world.state(number) == "MERGED"


FORMATTED = NEW.replace(" = ", "  =  ").replace("\n", "\n\n")
INNOCENT: dict[str, Files] = {
    "a moved file": {"refunds.py": None, "shop/refunds.py": WORK["refunds.py"]},
    "a formatted file": {"app.py": FORMATTED},
    "a rewrite": {"app.py": OLD + lines("payment", 8)},
    "an addition": {"app.py": NEW + lines("more", 5)},
    "a removal of old lines": {"util.py": BETTER.replace("util line 5 = 5\n", "")},
}


@pytest.mark.parametrize("files", INNOCENT.values(), ids=INNOCENT)
async def test_what_keeps_merged_work_lands(files: Files, world: World) -> None:
    await began(world)
    await lands(world, WORK)
    assert await world.state(await asked(world, files)) == "MERGED"


async def test_generated_files_may_go_back(world: World) -> None:
    await began(world)
    await push(world, {"vendor/lib.js": OLD, "made/out.py": OLD})
    await lands(world, {"vendor/lib.js": NEW})
    assert await world.state(await asked(world, {"vendor/lib.js": OLD})) == "MERGED"
    await lands(world, {"made/out.py": NEW})
    held = await asked(world, {"made/out.py": OLD})
    assert await is_held(world, held)


async def test_the_setting_names_the_generated_files_instead(world: World) -> None:
    await began(world, generated_paths=("*/made/*",))
    await push(world, {"vendor/lib.js": OLD, "made/out.py": OLD})
    await lands(world, {"made/out.py": NEW, "vendor/lib.js": NEW})
    assert await world.state(await asked(world, {"made/out.py": OLD})) == "MERGED"
    assert await is_held(world, await asked(world, {"vendor/lib.js": OLD}))


DECLARED = {
    "GitHub's sentence": {"title": "Back", "body": "Reverts #{number}\n\nIt was slow."},
    "GitHub's title": {"title": 'Revert "Refund orders"', "body": ""},
    "git's sentence": {"title": "Back", "body": "This reverts commit {sha}."},
}


@pytest.mark.parametrize("texts", DECLARED.values(), ids=DECLARED)
async def test_a_declared_revert_lands(texts: dict[str, str], world: World) -> None:
    await began(world)
    landed = await lands(world, WORK)
    places = {"number": landed, "sha": world.repository.git.branch("main")}
    said = {name: text.format(**places) for name, text in texts.items()}
    number = await asked(world, {"app.py": OLD, "util.py": UTIL, "refunds.py": None}, **said)
    assert await world.state(number) == "MERGED"


async def test_the_revert_of_a_revert_lands(world: World) -> None:
    await began(world)
    await lands(world, {"app.py": NEW})
    back = await asked(world, {"app.py": OLD}, title='Revert "Refund orders"')
    again = await asked(world, {"app.py": NEW}, title='Reapply "Refund orders"')
    assert [await world.state(number) for number in (back, again)] == ["MERGED", "MERGED"]


async def test_a_declaration_covers_the_landing_that_it_names_alone(world: World) -> None:
    await began(world)
    one = await lands(world, {"app.py": NEW})
    two = await lands(world, {"util.py": BETTER}, "Cache utilities")
    number = await asked(world, {"app.py": OLD, "util.py": UTIL}, body=f"Reverts #{one}")
    assert await is_held(world, number)
    told = world.comment_on(number)
    assert "Cache utilities" in told
    assert "Refund orders" not in told
    assert "would take back" not in said_on(world, one)
    await world.act("edit", number=number, body=f"Reverts #{one}\nReverts #{two}")
    await world.settle()
    assert await world.state(number) == "MERGED"


async def test_the_label_covers_all(world: World) -> None:
    await began(world)
    await lands(world, {"app.py": NEW})
    await lands(world, {"util.py": BETTER}, "Cache utilities")
    number = await asked(world, {"app.py": OLD, "util.py": UTIL})
    assert await is_held(world, number)
    await world.act("label", number=number, label="headgate:undoes", by="alice")
    await world.settle()
    assert await world.state(number) == "MERGED"


async def test_a_landing_past_the_queue_counts_as_well(world: World) -> None:
    await began(world)
    await lands(world, {"other.py": lines("other")})
    pushed = await push(world, {"app.py": NEW}, "Refund by hand")
    number = await asked(world, {"app.py": OLD})
    assert await is_held(world, number)
    assert "Refund by hand" in world.comment_on(number)
    await world.comment(f"/merge --undoes {pushed[:12]}", on=number)
    await world.settle()
    assert await world.state(number) == "MERGED"


async def test_it_goes_on_once_the_branch_has_lost_the_work_otherwise(world: World) -> None:
    await began(world)
    await lands(world, {"app.py": NEW})
    number = await asked(world, {"app.py": OLD, "own.py": lines("own")})
    assert await is_held(world, number)
    await push(world, {"app.py": OLD}, "Take it out by hand")
    assert await world.state(number) == "MERGED"


async def test_with_warn_it_lands_and_its_comment_says_so(world: World) -> None:
    await began(world, undone_work="WARN")
    landed = await lands(world, {"app.py": NEW})
    number = await asked(world, {"app.py": OLD})
    assert await world.state(number) == "MERGED"
    assert f"⚠️ It takes back `#{landed}`" in world.comment_on(number)
    assert "would take back" not in said_on(world, landed)


async def test_with_off_nothing_is_said(world: World) -> None:
    await began(world, undone_work="OFF")
    await lands(world, {"app.py": NEW})
    number = await asked(world, {"app.py": OLD})
    assert await world.state(number) == "MERGED"
    assert "takes back" not in world.comment_on(number)


async def test_work_that_has_landed_ends_without_a_test_run(world: World) -> None:
    await began(world)
    twin = await world.open(files={"app.py": NEW}, fresh=True, title="The same")
    landed = await lands(world, {"app.py": NEW})
    await world.comment("/merge", on=twin)
    await world.settle()
    entry = await world.entry(twin)
    assert (entry.state.value, entry.reason) == ("CANCELLED", Reason.SUPERSEDED)
    assert entry.detail.prs == (landed,)
    assert entry.verified_by is None
    assert f"its work has landed already, by `#{landed}`" in world.comment_on(twin)


async def test_what_a_rule_lets_in_waits_where_its_author_is_told(world: World) -> None:
    await began(world, rules=(EntryRule("tidy", 'title.startsWith("Tidy")', enter=True),))
    landed = await lands(world, {"app.py": NEW})
    number = await world.open(files={"app.py": OLD}, fresh=True, title="Tidy up")
    await world.settle()
    assert await is_held(world, number)
    assert f"`#{landed}`" in world.comment_on(number)
    twin = await world.open(files={"app.py": NEW + lines("own")}, fresh=True, title="Tidy more")
    await world.settle()
    assert await world.state(twin) == "MERGED"


async def test_a_member_of_a_stack_that_takes_back_the_one_below_waits(world: World) -> None:
    await began(world, merge_method=MergeMethod.MERGE_COMMIT)
    await lands(world, {"first.py": "1\n"})
    bottom = await world.open(head="part-1", files={"app.py": NEW}, fresh=True)
    own = {"app.py": OLD, "own.py": lines("own")}
    base = {"base": "part-1", "from": head_of(world, bottom)}
    top = await world.open(head="part-2", files=own, **base)
    await world.settle()
    await world.act("stack", numbers=[bottom, top])
    await world.settle()
    await world.comment("/merge", on=top)
    await world.settle()
    assert await world.state(bottom) == "MERGED"
    assert await is_held(world, top)
    assert f"`/merge --undoes #{bottom}`" in world.comment_on(top)


class TestBehindOthers:
    """What would be taken back has yet to land; only the merge result on top of it shows that."""

    @pytest.fixture
    def world_options(self) -> WorldOptions:
        """CI that ends when the story says so."""
        return GATED

    async def two(self, world: World, **settings: Any) -> tuple[int, int]:
        """A pull request, and another one from its branch that takes it back."""
        await began(world, merge_method=MergeMethod.MERGE_COMMIT, **settings)
        # A first landing makes the mirror.
        first = await world.open(by="alice", files={"first.py": "1\n"}, fresh=True)
        await world.comment("/merge --no-batch", on=first)
        await gates.ends(world, first)
        await world.settle()
        one = await world.open(by="alice", files={"app.py": NEW}, fresh=True, title="Refund")
        files = {"app.py": OLD, "own.py": lines("own")}
        two = await world.open(files=files, **{"from": head_of(world, one)})
        return one, two

    async def test_it_waits_for_the_one_ahead_and_then_for_its_author(self, world: World) -> None:
        one, two = await self.two(world, concurrency=2)
        await world.comment("/merge", on=one)
        await gates.under_test(world, one)
        await world.comment("/merge", on=two)
        await world.settle()
        assert (await world.entry(two)).reason is Reason.UNDOES_AHEAD
        assert f"would take back `#{one}`" in world.comment_on(two)
        await gates.ends(world, one)
        await world.settle()
        assert await world.state(one) == "MERGED"
        assert await is_held(world, two)
        assert f"`#{two}` by `bob` would take back work" in said_on(world, one)

    async def test_it_goes_on_without_the_one_ahead(self, world: World) -> None:
        one, two = await self.two(world, concurrency=2)
        await world.comment("/merge", on=one)
        await gates.under_test(world, one)
        await world.comment("/merge", on=two)
        await world.settle()
        await world.comment("/merge cancel", on=one)
        await gates.ends(world, two)
        await world.settle()
        assert await world.state(two) == "MERGED"

    async def test_it_goes_on_once_it_says_so(self, world: World) -> None:
        one, two = await self.two(world, concurrency=2)
        await world.comment("/merge", on=one)
        await gates.under_test(world, one)
        await world.comment("/merge", on=two)
        await world.settle()
        await world.comment(f"/merge --undoes #{one}", on=two)
        await gates.ends(world, one)
        await gates.ends(world, two)
        await world.settle()
        assert [await world.state(number) for number in (one, two)] == ["MERGED", "MERGED"]

    async def test_the_rest_of_a_batch_goes_on_without_it(self, world: World) -> None:
        one, two = await self.two(world, batch=True, batching_min_size=2)
        await world.comment("/merge", on=one)
        await world.comment("/merge", on=two)
        await world.settle()
        assert (await world.entry(two)).reason is Reason.UNDOES_AHEAD
        await gates.ends(world, one)
        await world.settle()
        assert await world.state(one) == "MERGED"
        assert await is_held(world, two)


class TestWithoutAMirror:
    """Nobody can judge; nothing waits for it, and `explain` says so."""

    @pytest.fixture
    def world_options(self) -> WorldOptions:
        """No test branch is built by git."""
        return WorldOptions(ci=gates.CI, settings={"build_method": "rest"})

    async def test_it_passes_and_explain_says_that_it_was_not_judged(self, world: World) -> None:
        await world.make_queue()
        number = await world.open(fresh=True, files={"app.py": OLD})
        await world.comment("/merge", on=number)
        await gates.under_test(world, number)
        queue = await world.queue()
        view = await explain.explain(world.runtime, queue, number)
        texts = [conditions.message(one, await world.value()) for one in view.explained.conditions]
        assert any("it takes back merged work was not judged" in each for each in texts)
        await gates.ends(world, number)


async def test_nobody_is_told_of_work_that_landed_otherwise(world: World) -> None:
    """The message of a commit names a pull request that it did not land with."""
    await began(world)
    await lands(world, {"other.py": lines("other")})
    other = await world.open(by="alice", files={"its.py": lines("its")}, fresh=True)
    await push(world, {"app.py": NEW}, f"Refund by hand (#{other})")
    number = await asked(world, {"app.py": OLD})
    assert await is_held(world, number)
    assert "would take back" not in said_on(world, other)
    await world.comment(f"/merge --undoes #{other}", on=number)
    await world.settle()
    assert await world.state(number) == "MERGED"


async def test_nothing_is_merged_directly_before_it_was_judged(
    world: World, tmp_path: Path
) -> None:
    """The mirror is lost, and the head was tested by itself: no test branch would be needed."""
    await began(world, direct_merge_mode="ALWAYS")
    landed = await lands(world, WORK)
    shutil.rmtree(tmp_path / "mirrors" / "github.localhost" / f"{world.repository.id}.git")
    files: Files = {"app.py": OLD, "util.py": UTIL, "refunds.py": None}
    number = await world.open(files=files, fresh=True)
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await is_held(world, number)
    assert f"`#{landed}`" in world.comment_on(number)


async def test_those_that_nobody_can_judge_keep_no_others_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undone_work, "JUDGED_AT_ONCE", 1)
    await began(world)
    await lands(world, {"app.py": NEW, "util.py": BETTER})
    conflicting = await asked(world, {"app.py": OLD})
    freed = await asked(world, {"util.py": UTIL, "own.py": lines("own")})
    assert await is_held(world, conflicting)
    assert await is_held(world, freed)
    await push(world, {"app.py": NEW.replace("refund", "other"), "util.py": UTIL})
    for _ in range(3):
        await undone_work.judge_again(world.runtime, await world.queue())
    await world.settle()
    assert await is_held(world, conflicting)
    assert await world.state(freed) == "MERGED"
