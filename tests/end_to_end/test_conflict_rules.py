"""Conflicts in append-only files that the rules of a queue resolve, from `/merge` to evidence."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from service.vocabulary import ConflictRule, MergeMethod, Resolution
from tests.end_to_end.test_repository_file import FILE, config_checks, push
from tests.end_to_end.test_stacks import head_of
from tests.harness.asking import asker
from tests.harness.signed_landings import files_of
from tests.harness.world import World, WorldOptions

LOG = "# Changes\n\n## Unreleased\n\n- old\n\n## 1.0\n\n- first\n"
RULES = (ConflictRule(("CHANGELOG.md",), Resolution.CHANGELOG),)
MERGES: dict[str, Any] = {"merge_method": MergeMethod.MERGE_COMMIT, "conflict_rules": RULES}
SQUASHES: dict[str, Any] = {
    "merge_method": MergeMethod.SQUASH,
    "land_tested_commits": True,
    "conflict_rules": RULES,
}
EACH_FORM = pytest.mark.parametrize("settings", [MERGES, SQUASHES], ids=["merge", "squash"])


@pytest.fixture
def world_options() -> WorldOptions:
    """Git builds from the first build on."""
    return WorldOptions(settings={"build_method": "git"})


def changelog(world: World) -> list[str]:
    """The entries of the change log on `main`."""
    tip = str(world.repository.git.branch("main"))
    git = ["git", "-C", str(world.repository.git.folder), "show", f"{tip}:CHANGELOG.md"]
    text = subprocess.run(git, check=True, capture_output=True, text=True).stdout
    return [line for line in text.splitlines() if line.startswith("- ")]


async def entries(world: World, *names: str) -> list[int]:
    """Pull requests that each add an entry at the same place of the change log."""
    await world.act("push", by="alice", branch="main", files={"CHANGELOG.md": LOG}, bypass=True)
    start: dict[str, Any] = {"from": world.repository.git.branch("main")}
    numbers = []
    for name in names:
        files = {"CHANGELOG.md": LOG.replace("- old", f"- {name}\n- old"), f"{name}.txt": "x\n"}
        numbers.append(await world.open(head=name, files=files, **start))
    await world.settle()
    return numbers


@EACH_FORM
async def test_each_lands_though_it_conflicts_with_the_one_before(
    world: World, tmp_path: Path, settings: dict[str, Any]
) -> None:
    await world.make_queue(**settings)
    numbers = await entries(world, "one", "two", "three")
    for number in numbers:
        await world.comment("/merge", on=number)
        await world.settle()
    assert [await world.state(number) for number in numbers] == ["MERGED"] * 3
    assert changelog(world) == ["- one", "- two", "- three", "- old", "- first"]
    files = await files_of(world, tmp_path)
    assert files.verify(f"{world.start}..main") in (0, 2)  # the push by hand has no evidence


@EACH_FORM
async def test_a_batch_of_them_lands_at_once_and_is_proved(
    world: World,
    tmp_path: Path,
    settings: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    await world.make_queue(batch=True, batching_min_size=3, **settings)
    numbers = await entries(world, "one", "two", "three")
    before = world.repository.git.branch("main")
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    assert [await world.state(number) for number in numbers] == ["MERGED"] * 3
    assert changelog(world) == ["- one", "- two", "- three", "- old", "- first"]
    files = await files_of(world, tmp_path)
    assert files.verify(f"{before}..main") == 0
    capsys.readouterr()
    assert files.verify("main") == 0
    shown = capsys.readouterr().out
    assert "proved: conflicts are resolved by rule CHANGELOG in CHANGELOG.md" in shown
    assert "note: Conflicts in CHANGELOG.md were resolved by rule CHANGELOG." in shown


@EACH_FORM
async def test_a_chain_lands_though_another_entry_has_landed(
    world: World, tmp_path: Path, settings: dict[str, Any]
) -> None:
    await world.make_queue(**settings)
    numbers = await entries(world, "one", "low")
    before = world.repository.git.branch("main")
    log = LOG.replace("- old", "- high\n- low\n- old")
    files = {"CHANGELOG.md": log, "low.txt": "y\n"}
    upper = await world.open(base="low", files=files, **{"from": head_of(world, numbers[1])})
    await world.settle()
    await world.comment("/merge", on=numbers[0])
    await world.settle()
    await world.comment("/merge", on=upper)
    await world.settle()
    if not settings.get("land_tested_commits"):
        # A merge call lands the members of a chain, and the provider refuses it.
        states = [await world.state(each) for each in (*numbers, upper)]
        assert states == ["MERGED", "NOT_READY", "NOT_READY"]
        assert "○ there is no conflict with `main`" in world.comment_on(numbers[1])
        return
    assert [await world.state(each) for each in (*numbers, upper)] == ["MERGED"] * 3
    assert changelog(world) == ["- one", "- high", "- low", "- old", "- first"]
    proofs = await files_of(world, tmp_path)
    assert proofs.verify(f"{before}..main") == 0


async def test_a_conflict_in_another_file_stays_with_its_author(world: World) -> None:
    await world.make_queue(**MERGES)
    numbers = await entries(world, "one", "two")
    await world.act("push", by="alice", branch="main", files={"two.txt": "y\n"}, bypass=True)
    for number in numbers:
        await world.comment("/merge", on=number)
        await world.settle()
    assert [await world.state(number) for number in numbers] == ["MERGED", "NOT_READY"]


async def test_without_rules_or_git_the_second_one_waits_for_its_author(world: World) -> None:
    await world.make_queue(merge_method=MergeMethod.MERGE_COMMIT)
    numbers = await entries(world, "one", "two")
    for number in numbers:
        await world.comment("/merge", on=number)
        await world.settle()
    assert [await world.state(number) for number in numbers] == ["MERGED", "NOT_READY"]


async def test_a_way_of_landing_that_knows_no_rules_is_refused_by_the_field(world: World) -> None:
    await world.make_queue(merge_method=MergeMethod.SQUASH)
    admin = await asker(world)
    rules = [{"paths": ["CHANGELOG.md"], "rule": "UNION"}]
    status, refused = await admin.post("updateQueue", conflictRules=rules)
    assert status == 400
    assert refused["errors"][0]["field"] == "/conflictRules"
    assert "needs `mergeMethod: MERGE_COMMIT`, or `SQUASH` with" in refused["detail"]
    done = await admin.done("updateQueue", conflictRules=rules, landTestedCommits=True)
    assert done["conflictRules"] == rules
    for other in ({"landTestedCommits": False}, {"mergeMethod": "REBASE"}):
        status, refused = await admin.post("updateQueue", **other)
        assert (status, refused["errors"][0]["field"]) == (400, "/conflictRules")
    await admin.done("updateQueue", conflictRules=[], landTestedCommits=False)


async def test_a_file_that_says_no_way_of_landing_is_refused_with_its_line(world: World) -> None:
    await world.make_queue()
    text = "version: 1\nqueues:\n  main:\n    %sconflictRules: [{paths: [A.md], rule: UNION}]\n"
    number = await world.open(files={FILE: text % ""})
    await world.settle()
    ((conclusion, _, summary),) = config_checks(world, number)
    assert conclusion == "failure"
    assert "- Line 4: `queues.main.conflictRules needs mergeMethod: MERGE_COMMIT, or" in summary
    await push(world, {FILE: text % "mergeMethod: MERGE_COMMIT\n    "})
    await world.settle()
    assert (await world.value()).config.conflict_rules[0].paths == ("A.md",)
