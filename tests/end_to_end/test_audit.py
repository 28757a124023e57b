"""`headgate audit` beside a running service: over its database, and a clone or its mirror."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update

from bot.cli import app
from service.mergequeue.auditing.findings import Rule
from service.mergequeue.store.tables_queues import EntryRow, LandingEvidenceRow, LandingRow
from service.vocabulary import MergeMethod
from tests.harness import audited, databases, signed_landings
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions

Ask = Callable[..., Any]
SECRET_KEY = "c2VjcmV0LWtleS1vZi1hLXRlc3Qtd29ybGQtMDEyMzQ1Njc4OTAx"

landings, evidence, entries = (
    kind.__table__ for kind in (LandingRow, LandingEvidenceRow, EntryRow)
)


@pytest.fixture
def world_options(tmp_path: Path, request: pytest.FixtureRequest) -> WorldOptions:
    """A database that another process can open too."""
    settings = getattr(request, "param", {})
    url = databases.sqlite_at(tmp_path / "headgate.db")
    return WorldOptions(database_url=url, settings=settings)


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run the command; exit code, and what it prints."""
    monkeypatch.setenv("HEADGATE_SECRET_KEY", SECRET_KEY)

    async def asking(*options: str) -> tuple[int, str]:
        place = ["--database-url", databases.sqlite_at(tmp_path / "headgate.db")]
        where = ["--data-dir", str(tmp_path)]
        capsys.readouterr()
        code = await asyncio.to_thread(app.run, ["audit", *place, *where, *options])
        printed = capsys.readouterr()
        return code, printed.out or printed.err

    return asking


async def land(world: World, **more: Any) -> int:
    """Land a pull request."""
    number = await world.open(**more)
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    return number


async def cloned(world: World, tmp_path: Path, name: str = "clone") -> list[str]:
    """The option with a fresh clone."""
    folder = tmp_path / name
    await asyncio.to_thread(signed_landings.clone, world.repository.git.folder, folder)
    return ["--checkout", str(folder)]


async def test_landings_are_as_promised_and_a_push_is_named(
    world: World, ask: Ask, tmp_path: Path
) -> None:
    await world.make_queue()
    await land(world)
    await world.act("push", by="alice", branch="main", files={"m.txt": "x\n"}, bypass=True)
    await world.settle()
    await land(world)
    clone = await cloned(world, tmp_path)
    code, said = await ask(*clone)
    assert code == 0, said
    first, note, last = said.splitlines()
    assert first.startswith("github.localhost/octo/widgets@main: 2 landings, 3 commits of ")
    assert note.startswith("  note: pushed_past_the_queue: ")
    assert "by alice" in note
    assert last == "1 queue, 0 faults"
    code, said = await ask(*clone, "--json", "--queue", "octo/widgets@main", "--since", "1h")
    (queue,) = json.loads(said)["queues"]
    assert (code, json.loads(said)["verdict"], queue["landings"]) == (0, "as promised", 2)
    assert [one["rule"] for one in queue["findings"]] == ["pushed_past_the_queue"]
    code, said = await ask("--queue", "octo/other@main")
    assert (code, "octo/other@main has no queue here" in said) == (4, True)


async def test_without_a_repository_it_says_that_it_cannot_tell(world: World, ask: Ask) -> None:
    await world.make_queue()
    assert (await ask())[0] == 0
    await land(world)
    code, said = await ask()
    assert (code, said.splitlines()[1:]) == (
        2,
        [
            "  cannot tell: no_git: 1 landing was not compared with git",
            "    Run it again with --checkout FOLDER: a fresh clone of the repository.",
            "1 queue, 0 faults",
        ],
    )


async def test_an_old_clone_lacks_the_newest_landings(
    world: World, ask: Ask, tmp_path: Path
) -> None:
    await world.make_queue()
    await land(world)
    clone = await cloned(world, tmp_path)
    await land(world)
    code, said = await ask(*clone)
    assert (code, "cannot tell: clone_is_behind" in said) == (2, True)


@pytest.mark.parametrize(
    "world_options",
    [{"build_method": "git"}],
    indirect=True,
)
async def test_the_mirror_is_read_where_git_builds_and_ends_with_the_last_build(
    world: World, ask: Ask
) -> None:
    await world.make_queue()
    await land(world)
    newest = await land(world)
    code, said = await ask()
    assert (code, f"the newest 1 landings yet, the last is #{newest}" in said) == (2, True)
    assert "mirrors/github.localhost/" in said


@pytest.mark.breaks_promises
@pytest.mark.parametrize(
    ("planted", "rules"),
    [
        (delete(landings), {Rule.MERGED_WITHOUT_LANDING, Rule.EVIDENCE_WITHOUT_LANDING}),
        (update(landings).values(landed_tree="0" * 40), {Rule.TREE_DIFFERS, Rule.EVIDENCE_DIFFERS}),
        (update(landings).values(expected_parent="0" * 40), {Rule.PARENT_DIFFERS}),
        (update(landings).values(state="refused"), {Rule.COMMIT_WITHOUT_LANDING}),
        (update(evidence).values(envelope="{}"), {Rule.EVIDENCE_REFUTED}),
        (update(entries).values(live=True), {Rule.ENDED_BUT_LIVE}),
    ],
    ids=["no landing", "another tree", "another parent", "refused", "cut evidence", "live"],
)
async def test_what_is_planted_in_the_database_is_found(
    world: World, ask: Ask, tmp_path: Path, planted: Any, rules: set[Rule]
) -> None:
    await world.make_queue()
    await land(world)
    assert (
        await audited.faults_of(world.runtime.store, {"octo/widgets": world.repository.git.folder})
        == []
    )
    clone = await cloned(world, tmp_path)
    await world.runtime.store.run(lambda session: session.execute(planted).rowcount)
    code, said = await ask(*clone, "--json")
    found = {one["rule"] for queue in json.loads(said)["queues"] for one in queue["findings"]}
    assert code == 1
    assert {rule.title for rule in rules} <= found


@pytest.mark.breaks_promises
async def test_a_landing_that_was_pushed_away_is_a_gap(
    world: World, ask: Ask, tmp_path: Path
) -> None:
    await world.make_queue()
    await land(world)
    await world.act("force_push", by="alice", branch="main", to=world.start, bypass=True)
    await world.settle()
    code, said = await ask(*await cloned(world, tmp_path))
    assert (code, "landing_not_on_branch" in said) == (1, True)


async def test_landings_of_a_queue_that_was_made_anew_are_no_fault_of_the_deleted_one(
    world: World, ask: Ask, tmp_path: Path
) -> None:
    await world.make_queue(merge_method=MergeMethod.MERGE_COMMIT)
    await land(world)
    await (await asker(world)).done("deleteQueue")
    await world.make_queue(merge_method=MergeMethod.MERGE_COMMIT)
    await land(world)
    code, said = await ask(*await cloned(world, tmp_path), "--json")
    assert (code, [one["findings"] for one in json.loads(said)["queues"]]) == (0, [[], []]), said
