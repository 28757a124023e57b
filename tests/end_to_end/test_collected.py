"""What CI leaves behind becomes evidence without a token and without a change of CI."""

import pytest
from sqlalchemy import select

from service.database.database import Tx
from service.database.outbox import Lane
from service.database.tables_deliveries import OutboxRow
from service.mergequeue.engine.states import QueueState
from service.testhealth.store.cases import OWNERS
from service.testhealth.store.tables_tests import CaseRow
from service.testhealth.store.uploads import UPLOAD, Upload, uploads
from tests.harness.world import World, WorldOptions

CI = """\
triggers: {push: [main, "headgate/merge/**"], pull_request: true}
checks:
  - name: unit
    seconds: 3
    reports:
      files: [bomb.xml]
      tests:
        - {name: adds, rules: [{exists: [broken.txt], conclusion: failure}]}
        - {name: divides, classname: tests.sums}
"""
BOMB = "0" * 9_000_000
"""A report that packs to less than a two-hundredth of itself."""


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that leaves reports, and a look at lost deliveries that comes soon."""
    return WorldOptions(ci=CI, settings={"period_redelivery_s": 10})


async def push(world: World, **files: str) -> str:
    """Change `main`; the commit, once everybody has taken notice."""
    made = await world.act("push", by="alice", branch="main", files=files, bypass=True)
    await world.settle()
    return str(made["sha"])


async def of(world: World, sha: str) -> list[Upload]:
    """What was uploaded of a commit."""
    return await world.runtime.store.read(_of, sha)


def _of(session: Tx, sha: str) -> list[Upload]:
    asked = select(*UPLOAD.columns).where(uploads.c.sha == sha).order_by(uploads.c.received_at)
    return [UPLOAD.value(row) for row in session.execute(asked)]


def _tests(session: Tx) -> dict[str, bool]:
    cases = CaseRow.__table__
    asked = select(cases.c.name, cases.c.last_failed_at).where(cases.c.is_known.is_(True))
    return {row.name: row.last_failed_at is not None for row in session.execute(asked)}


def _lanes(session: Tx) -> set[Lane]:
    return {Lane(lane) for lane in session.execute(select(OutboxRow.__table__.c.lane)).scalars()}


async def failed(world: World) -> dict[str, bool]:
    """Known tests, and whether they ever failed."""
    return await world.runtime.store.read(_tests)


def _owners(session: Tx) -> dict[str, tuple[str, ...]]:
    cases = CaseRow.__table__
    rows = session.execute(select(cases.c.name, cases.c.owners))
    return {row.name: OWNERS.decode(row.owners) for row in rows}


async def until_owners_are(world: World, expected: dict[str, tuple[str, ...]]) -> None:
    """Wait until tests have these owners."""

    async def they_are() -> bool:
        return await world.runtime.store.read(_owners) == expected

    await world.until(they_are)


async def test_a_push_is_evidence_of_main_and_a_fork_of_nothing(world: World) -> None:
    await world.settle()
    sha = await push(world, **{"a.txt": "a\n"})
    (upload,) = await of(world, sha)
    assert (upload.kind, upload.branch, upload.job) == ("stable", "main", "ci / junit-unit")
    assert upload.position == len(world.repository.git.objects.log(sha))
    assert await failed(world) == {"adds": False, "divides": False}

    number = await world.open(by="dave", fork=True, files={"broken.txt": "x\n"})
    await world.settle()
    pull = world.repository.issues[number].pull
    assert pull is not None
    (untrusted,) = await of(world, pull.head_sha)
    assert (untrusted.kind, untrusted.prs) == ("untrusted", (number,))
    assert await failed(world) == {"adds": False, "divides": False}


async def test_a_test_run_of_the_queue_is_known_as_such(world: World) -> None:
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]
    heads = [
        run.head_sha
        for run in world.repository.workflow_runs
        if run.head_branch.startswith("headgate/merge/")
    ]
    found = [(each.kind, each.prs) for head in heads for each in await of(world, head)]
    assert set(found) == {("queue", (number,))}


async def test_a_fork_that_pushes_while_it_is_queued_is_still_known_by_its_head(
    world: World,
) -> None:
    await world.settle()
    await world.make_queue(state=QueueState.PAUSED)
    number = await world.open(by="dave", fork=True)
    await world.settle()
    await world.comment("/merge", on=number, by="alice")
    await world.settle()
    pushed = await world.act("push", by="dave", number=number, files={"more.txt": "x\n"})
    await world.settle()
    (upload,) = await of(world, pushed["sha"])
    assert (upload.kind, upload.prs) == ("untrusted", (number,))


async def test_reports_of_a_fork_wait_behind_those_of_test_branches_whatever_its_branch_is_called(
    world: World,
) -> None:
    await world.settle()
    named_alike = f"headgate/merge/pr-1/{world.runtime.ids.uuid()}"
    number = await world.open(by="dave", fork=True, head=named_alike)
    await world.settle()
    pull = world.repository.issues[number].pull
    assert pull is not None
    (upload,) = await of(world, pull.head_sha)
    assert (upload.kind, upload.branch) == ("untrusted", named_alike)
    assert Lane.REPORTS not in await world.runtime.store.read(_lanes)


async def test_tests_belong_to_whom_the_file_of_the_repository_says(world: World) -> None:
    await world.settle()
    await push(world, CODEOWNERS="* @octo/all\n", **{"tests/sums.py": "\n"})
    # Reports name no file here, but a class, and `unit` stands nowhere.
    await until_owners_are(world, {"adds": (), "divides": ("@octo/all",)})
    await push(world, CODEOWNERS="* @octo/all\n/tests/ @octo/web\n")
    await until_owners_are(world, {"adds": (), "divides": ("@octo/web",)})


async def test_a_bomb_is_refused_and_the_rest_counts(world: World) -> None:
    sha = await push(world, **{"bomb.xml": BOMB})
    (upload,) = await of(world, sha)
    assert sorted((file.name, file.status.value) for file in upload.files) == [
        ("bomb.xml", "refused"),
        ("junit.xml", "accepted"),
    ]
    assert upload.is_eligible


async def test_a_delivery_that_failed_is_made_up_for(world: World) -> None:
    await world.settle()
    ours = world.sandbox.world.webhook_url
    world.sandbox.world.webhook_url = "http://127.0.0.1:9/webhooks/github"
    sha = await push(world, **{"a.txt": "a\n"})
    assert await of(world, sha) == []
    world.sandbox.world.webhook_url = ours

    async def is_there() -> bool:
        return bool(await of(world, sha))

    await world.until(is_there)
    (upload,) = await of(world, sha)
    assert upload.kind == "stable"
