"""A repository moves over from another queue: imported, committed, and the first `/merge` lands."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot import wiring
from bot.cli import app
from bot.cli.moving import plan
from bot.github import importable
from service.provider.values import Vehicle
from service.vocabulary import RepoRef
from tests.end_to_end.test_doctor_conditions import push
from tests.harness import asking
from tests.harness.world import REPO, World, WorldOptions, settings_for
from tests.moving import examples

CI = ".sandbox/ci.yml"


@dataclass(frozen=True)
class Moved:
    """What must be so in the queue of `main` after the import of an example.

    `rules`: the checks that the branch's rules require; `checks`: those that CI reports;
    `approvals`: who must approve first.
    """

    settings: dict[str, Any]
    rules: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    vehicle: Vehicle = Vehicle.PUSH
    label: str = "headgate-submit"
    approvals: tuple[str, ...] = ()


MOVED = {
    "github": Moved(
        {"concurrency": 8, "testing_timeout_minutes": 45, "can_optimistically_merge": True},
        rules=("build", "e2e", "lint"),
        checks=("build", "e2e", "lint"),
    ),
    "mergify": Moved(
        {"concurrency": 4, "batching_min_size": 6, "testing_timeout_minutes": 90},
        checks=("lint", "test"),
        vehicle=Vehicle.DRAFT_PR,
        label="ready",
        approvals=("alice", "bob"),
    ),
    "bors": Moved(
        {"testing_timeout_minutes": 90, "batching_min_size": 8, "delete_branch": True},
        checks=("test", "rustfmt", "labels"),
    ),
    "rust_bors": Moved(
        {"testing_timeout_minutes": 360}, rules=("conclusion",), checks=("conclusion",)
    ),
    "trunk": Moved({"concurrency": 5}, checks=("Unit tests", "Lint")),
    "kodiak": Moved(
        {"delete_branch": True, "commit_title": "{{ title }} (#{{ number }})"},
        rules=("test",),
        checks=("test",),
        vehicle=Vehicle.DRAFT_PR,
        label="ship it",
    ),
    "graphite": Moved({}, rules=("test",), checks=("test",)),
}
AUDITS = ("workflow-triggers", "workflow-conditions", "workflow-concurrency", "repository-file")


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    moved = MOVED[request.node.callspec.params.get("name", "github")]
    push = '["headgate/merge/**"]' if moved.vehicle is Vehicle.PUSH else "[]"
    checks = "".join(f"  - {{name: {each}, seconds: 0.1}}\n" for each in moved.checks)
    ci = f"triggers: {{push: {push}, pull_request: true}}\nchecks:\n{checks}"
    return WorldOptions(required=moved.rules, ci=ci)


@pytest.mark.parametrize("name", examples.NAMES)
async def test_an_imported_repository_lands_its_first_pull_request(
    world: World, name: str, tmp_path: Path
) -> None:
    folder, moved = examples.checkout(name, tmp_path), MOVED[name]
    assert app.run([*examples.arguments(folder), "--write"]) == 0
    await push(world, dict(examples.contents(folder)))
    number = await world.open(by="carol")
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    for person in moved.approvals:
        assert await world.merged() == []
        await world.act("approve", by=person, number=number)
        await world.settle()
    assert await world.merged() == [number], world.comment_on(number)
    config = (await world.value()).config
    assert {key: getattr(config, key) for key in moved.settings} == moved.settings
    assert config.enqueueing_label == moved.label
    assert config.create_prs_for_testing_branches is (moved.vehicle is Vehicle.DRAFT_PR)
    found = (await (await asking.asker(world)).done("runDoctor"))["findings"]
    assert [one for one in found if one["audit"] in AUDITS and one["severity"] == "error"] == []


async def test_a_repository_is_read_from_github_with_its_rules(
    world: World, tmp_path: Path
) -> None:
    files = examples.contents(examples.checkout("github", tmp_path))
    await push(world, dict(files))
    client = wiring.live_client(
        settings_for(tmp_path, world.sandbox, WorldOptions()),
        RepoRef(asking.HOST, *REPO.split("/")),
        world.clock,
    )
    try:
        read = await importable.read(client, None, plan.paths())
    finally:
        await client.github.close()
    assert read.branch == "main"
    assert {path: text.decode() for path, text in read.files.items()} == files
    made = plan.make(read.files, read.branch, ("rules", read.rules))
    assert [one.path for one in made.changes] == [plan.OWN_FILE, *sorted(files)]
