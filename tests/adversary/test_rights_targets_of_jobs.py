"""Attacks by which one job would change what another's pull request is tested with."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.mergequeue.engine.config import Mode
from service.mergequeue.store import pull_requests as known_pulls
from service.vocabulary import Role, Sha
from tests.harness import issuer as issuers
from tests.harness.asking import asker
from tests.harness.issuer import AUDIENCE, Issuer
from tests.harness.world import World, WorldOptions

CI = """\
triggers: {pull_request: true}
checks:
  - {name: unit, seconds: 3}
"""


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuers.issuing() as found:
        yield found


@pytest.fixture
def world_options(issuer: Issuer) -> WorldOptions:
    settings = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE}
    return WorldOptions(ci=CI, settings=settings)


def head_of(world: World, number: int) -> Sha:
    pull = world.repository.issues[number].pull
    assert pull is not None
    return Sha(pull.head_sha)


async def opened(world: World) -> int:
    number = await world.open()
    await world.settle()
    return number


def job_of(world: World, issuer: Issuer, number: int) -> str:
    """The OIDC token of a job that tests this pull request."""
    (run,) = [one for one in world.repository.workflow_runs if one.pulls == [number]]
    pull = world.repository.issues[number].pull
    assert pull is not None
    return issuer.token(
        world.clock.now().timestamp(),
        repository_id=str(world.repository.id),
        run_id=str(run.id),
        run_attempt="1",
        event_name="pull_request",
        ref=f"refs/pull/{number}/merge",
        head_ref=pull.head_ref,
    )


async def sent(world: World, token: str, number: int, sha: Sha) -> tuple[int, dict[str, Any]]:
    """What an upload with this token is answered."""
    ask = await asker(world)
    headers = {"x-api-token": token}
    more = {"headers": headers, "sha": sha, "impactedTargets": ["//lie"]}
    return await ask.post("setImpactedTargets", number, **more)


async def kept(world: World, number: int, sha: Sha) -> bool:
    repository = (await world.queue()).repository_id
    found = await world.runtime.store.read(known_pulls.targets_of, repository, [(number, sha)])
    return (number, sha) in found


async def test_a_job_sets_the_targets_of_the_head_that_it_tests(
    world: World, issuer: Issuer
) -> None:
    """Hurts everybody who builds main: halves that fail together would land side by side."""
    await world.make_queue(mode=Mode.PARALLEL)
    mine = await opened(world)
    status, answer = await sent(world, job_of(world, issuer, mine), mine, head_of(world, mine))
    assert (status, answer.get("targetCount")) == (200, 1), answer
    assert await kept(world, mine, head_of(world, mine))


async def test_a_token_that_every_job_holds_sets_no_targets(world: World) -> None:
    """Hurts everybody who builds main: halves that fail together would land side by side."""
    await world.make_queue(mode=Mode.PARALLEL)
    mine = await opened(world)
    every = await asker(world, Role.CI)
    status, answer = await sent(world, every.secret, mine, head_of(world, mine))
    assert (status, answer["code"]) == (403, "not_own_pull_request")
    assert "id-token: write" in answer["detail"]
    assert not await kept(world, mine, head_of(world, mine))


async def test_a_job_sets_no_targets_of_another_pull_request(world: World, issuer: Issuer) -> None:
    """Hurts everybody who builds main: halves that fail together would land side by side."""
    await world.make_queue(mode=Mode.PARALLEL)
    mine, theirs = await opened(world), await opened(world)
    token = job_of(world, issuer, mine)
    for sha in (head_of(world, theirs), head_of(world, mine)):
        status, answer = await sent(world, token, theirs, sha)
        assert (status, answer["code"]) == (403, "not_own_pull_request")
        assert not await kept(world, theirs, sha)


async def test_a_job_sets_no_targets_of_another_head(world: World, issuer: Issuer) -> None:
    """Hurts everybody who builds main: halves that fail together would land side by side."""
    await world.make_queue(mode=Mode.PARALLEL)
    mine = await opened(world)
    token = job_of(world, issuer, mine)
    await world.act("push", number=mine, files={"later.txt": "x\n"})
    for sha in (head_of(world, mine), Sha("f" * 40)):
        status, answer = await sent(world, token, mine, sha)
        assert (status, answer["code"]) == (403, "not_own_pull_request")
        assert not await kept(world, mine, sha)


async def test_a_job_that_tests_no_pull_request_sets_no_targets(
    world: World, issuer: Issuer
) -> None:
    """Hurts everybody who builds main: halves that fail together would land side by side."""
    await world.make_queue(mode=Mode.PARALLEL)
    mine = await opened(world)
    now = world.clock.now().timestamp()
    token = issuer.token(now, repository_id=str(world.repository.id))
    status, answer = await sent(world, token, mine, head_of(world, mine))
    assert (status, answer["code"]) == (403, "not_own_pull_request")
    assert not await kept(world, mine, head_of(world, mine))


async def test_an_operator_may_set_targets(world: World) -> None:
    """Hurts everybody who builds main: halves that fail together would land side by side."""
    await world.make_queue(mode=Mode.PARALLEL)
    mine = await opened(world)
    operator = await asker(world, Role.QUEUE)
    status, _ = await sent(world, operator.secret, mine, head_of(world, mine))
    assert status == 200
