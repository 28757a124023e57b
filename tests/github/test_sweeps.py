"""Facts of many pull requests: how many by one call, and what is read by itself."""

import re

import pytest

from service.provider.errors import Throttled, Unavailable
from service.vocabulary import Blocker, BlockerCode
from tests.provider.stage import on_sandbox

MANY_CHECKS = """
triggers: { pull_request: true }
checks:
""" + "".join(
    f"  - {{ name: check-{number}, seconds: 3, rules: [ {{ exists: [bad-{number}.txt], "
    "conclusion: failure } ] }\n"
    for number in range(1, 102)
)


@pytest.fixture
async def stage():
    async with on_sandbox() as made:
        yield made


async def opened(stage, count):
    return [(await stage.open({f"file-{each}.txt": "x\n"}))[0] for each in range(count)]


def asked(stage):
    """The queries about pull requests, in order."""
    calls = stage.sandbox.world.calls
    # A call that the stand-in struck has no body.
    bodies = [each["body"] or {} for each in calls if each["path"].endswith("/graphql")]
    return [body["query"] for body in bodies if "pullRequest" in body.get("query", "")]


async def swept(stage, numbers):
    """Read them all; how many calls it took."""
    before = len(asked(stage))
    found = await stage.provider.pull_requests(stage.repo, numbers)
    assert sorted(found) == sorted(numbers)
    return len(asked(stage)) - before


async def test_fifty_are_read_by_one_call(stage):
    numbers = await opened(stage, 3)
    missing = list(range(1000, 1048))
    assert await swept(stage, [*numbers, *missing[:47]]) == 1
    assert await swept(stage, [*numbers, *missing]) == 2


async def test_whether_a_check_is_required_is_asked_with_each_ones_own_number(stage):
    numbers = await opened(stage, 2)
    await swept(stage, numbers)
    query = asked(stage)[-1]
    found = re.findall(r"pr_(\d+): pullRequest\(number: (\d+)\)|pullRequestNumber: (\S+?)\)", query)
    told = [name for named in found for name in named if name]
    assert told == [str(number) for number in numbers for _ in range(4)]


async def test_one_with_more_checks_than_a_page_is_read_by_itself():
    async with on_sandbox(files={".sandbox/ci.yml": MANY_CHECKS}) as stage:
        await stage.rules(required_checks=[f"check-{number}" for number in range(1, 102)])
        files = {f"bad-{number}.txt": "x\n" for number in (1, 101)}
        number, _ = await stage.open(files)
        found = await stage.provider.pull_requests(stage.repo, [number])
        assert found[number].blockers == (
            Blocker(BlockerCode.CHECK_FAILING, "check-1"),
            Blocker(BlockerCode.CHECK_FAILING, "check-101"),
        )
        assert len(asked(stage)) == 3


async def test_one_with_more_conversations_than_a_page_is_read_by_itself(stage):
    await stage.rules(rulesets=[stage.ruleset("pull_request", **stage.conversations())])
    number, other = await opened(stage, 2)
    for _ in range(101):
        await stage.act("discuss", by="bob", number=number, body="why?")
    for thread in stage.issue(number).pull.threads[:100]:
        thread.is_resolved = True
    found = await stage.provider.pull_requests(stage.repo, [number, other])
    assert found[number].blockers == (Blocker(BlockerCode.CONVERSATIONS_UNRESOLVED),)
    assert found[other].blockers == ()
    assert len(asked(stage)) == 3


async def test_after_a_failure_half_as_many_are_asked_for_and_slowly_more_again(stage):
    numbers = await opened(stage, 4)
    await stage.fault("fail_before", nth=None, graphql="pullRequest", status=502)
    with pytest.raises(Unavailable):
        await swept(stage, numbers)
    stage.clear_faults()
    assert [await swept(stage, numbers) for _ in range(3)] == [2, 1, 1]


async def test_one_is_asked_for_however_often_it_failed(stage):
    numbers = await opened(stage, 2)
    await stage.fault("fail_before", nth=None, graphql="pullRequest", status=502)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await swept(stage, numbers)
    stage.clear_faults()
    assert await swept(stage, numbers) == 2


async def test_a_limit_does_not_make_the_parts_smaller(stage):
    numbers = await opened(stage, 4)
    await stage.fault("secondary_limit", graphql="pullRequest", retry_after=600)
    with pytest.raises(Throttled):
        await swept(stage, numbers)
    await stage.clock.sleep(600)
    assert await swept(stage, numbers) == 1
