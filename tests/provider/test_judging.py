"""What the provider says of heads that take back what has landed, or what is ahead of them.

Rules: docs/design/undone-work.md 4 and 6.
"""

import shutil

import pytest

from service.landed_work import GENERATED
from service.provider.values import GuardedWork, Vehicle
from tests.provider.stage import mirrors_in, on_sandbox
from tests.provider.undone import lines

NEW = lines(*"abcdefgh")


@pytest.fixture
async def stage(tmp_path):
    async with on_sandbox(mirrors=mirrors_in(tmp_path)) as made:
        await made.push_files({"t": "t\n"})
        await made.provider.build(made.request(await made.open({"first": "1\n"})))
        yield made


def asked(stage, *pulls, after, **changed):
    guard = GuardedWork(after, GENERATED)
    return stage.request(*pulls, vehicle=Vehicle.PUSH, guard=guard, **changed)


async def built(stage, *pulls, **changed):
    """How the heads of a test branch stand to landed work, by number."""
    return (await stage.provider.build(asked(stage, *pulls, **changed))).judged


async def test_one_that_the_one_ahead_contains_has_no_landing(stage):
    after = stage.tip()
    lower = await stage.open({"lower.py": "1\n"})
    one = await stage.open({"app.py": NEW}, **{"from": lower[1]})
    two = await stage.open({"app.py": None, "own.py": "1\n"}, **{"from": one[1]})
    judged = await built(stage, one, lower, two, after=after)
    [work] = judged[two[0]].undone
    assert (work.number, work.is_ahead) == (one[0], True)


async def test_a_head_that_the_tip_contains_has_no_landing(stage):
    after = stage.tip()
    await stage.push_files({"app.py": NEW})
    lower = await stage.open({"lower.py": "1\n"}, **{"from": after})
    await stage.act("push", branch="main", files={}, message="m", bypass=True)
    two = await stage.open({"app.py": None})
    contained = (lower[0], after)
    judged = await built(stage, contained, two, after=after)
    [work] = judged[two[0]].undone
    assert (work.number, work.is_ahead) == (None, False)


async def test_what_a_head_declares_hides_no_other_landing(stage):
    after = stage.tip()
    await stage.push_files({"zero.py": NEW.replace("a", "z")})
    for number in range(60):
        await stage.push_files({f"{number}.py": lines(*(f"{number}{each}" for each in "abcd"))})
    landed = stage.git("rev-list", f"{after}..main").split()
    message = "\n".join(f"This reverts commit {sha}." for sha in landed[:60])
    gone = {"zero.py": None, **{f"{number}.py": None for number in range(60)}}
    head = await stage.open(gone, message=message)
    judged = await built(stage, head, after=after)
    assert [work.commit for work in judged[head[0]].undone] == landed[60:]


async def test_without_a_mirror_it_may_be_judged_with_its_test_branch(stage):
    after = stage.tip()
    head = await stage.open({"app.py": NEW})
    await stage.push_files({"b.py": NEW})
    shutil.rmtree(stage.mirror)
    [found] = (await stage.provider.judge(asked(stage, head, after=after))).values()
    assert (bool(found.trouble), found.later) == (True, True)
    [found] = (await stage.provider.judge(asked(stage, head, after=stage.tip()))).values()
    assert (bool(found.trouble), found.later) == (True, False)


async def test_where_git_never_builds_nothing_is_judged_later(tmp_path):
    async with on_sandbox() as stage:
        after = stage.tip()
        head = await stage.open({"app.py": NEW})
        await stage.push_files({"b.py": NEW})
        [found] = (await stage.provider.judge(asked(stage, head, after=after))).values()
        assert (bool(found.trouble), found.later) == (True, False)
