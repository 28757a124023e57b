"""How many processes and calls a test branch costs by each merge method.

See docs/design/git-builds.md 7.
"""

import pytest

from service.provider.values import Vehicle
from service.vocabulary import MergeMethod
from tests.provider.stage import mirrors_in, on_sandbox

WRITES_BY_REST = {
    MergeMethod.MERGE_COMMIT: ["refs", *["merges"] * 3, "rename"],
    MergeMethod.SQUASH: ["refs", *["merges", "commits", "move"] * 2, "merges", "rename"],
    MergeMethod.REBASE: ["refs", *["merges", "commits", "move"] * 2, "merges", "rename"],
}


def writes(stage, since):
    """The writes to the REST API, by what they write."""
    calls = [call for call in stage.calls(since) if "/api/" in call["path"]]
    return [
        "move" if call["method"] == "PATCH" else call["path"].rpartition("/")[2]
        for call in calls
        if stage.is_write(call)
    ]


@pytest.mark.parametrize("method", list(MergeMethod))
async def test_the_rest_api_makes_three_writes_of_a_squash_that_is_built_on(method):
    async with on_sandbox() as stage:
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        before = len(stage.calls())
        await stage.provider.build(stage.request(*pulls, method=method, vehicle=Vehicle.PUSH))
        assert writes(stage, before) == WRITES_BY_REST[method]


@pytest.mark.parametrize("method", list(MergeMethod))
async def test_git_makes_one_push_by_every_method(tmp_path, method):
    async with on_sandbox(mirrors=mirrors_in(tmp_path)) as stage:
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        before = len(stage.calls())
        await stage.provider.build(stage.request(*pulls, method=method, vehicle=Vehicle.PUSH))
        assert (writes(stage, before), len(stage.pushes())) == ([], 1)
