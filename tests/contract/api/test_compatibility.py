"""Clients of Trunk against a service with `HEADGATE_API_COMPATIBILITY=trunk`.

None of them is published as a package, so their requests and what they expect are written down
here, from their public repositories.
"""

from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import jsonschema_rs
import pytest

from tests.contract import instance as instances
from tests.contract.instance import Instance

TRUNK = replace(
    instances.OPTIONS,
    required=("unit",),
    settings={**instances.RECEIVERS, "api_compatibility": "trunk"},
)

# github.com/RigelBuild/trunk-mq-mcp, src/types.ts at babe8333: every field is required, and null
# is refused where this says so by a type.
TEXT, NUMBER, TRUTH, LIST = ({"type": kind} for kind in ("string", "number", "boolean", "array"))
TEXTS = {"type": "array", "items": TEXT}
STATES = (
    *("not_ready", "pending", "testing", "tests_passed"),
    *("merged", "failed", "cancelled", "pending_failure"),
)
SUBMISSION = {
    "state": {"enum": list(STATES)},
    **dict.fromkeys(("id", "stateChangedAt", "priorityName", "usedDefaultPriorityName"), TEXT),
    **dict.fromkeys(("prTitle", "prSha", "prBaseBranch", "prAuthor"), TEXT),
    **dict.fromkeys(("priorityValue", "prNumber"), NUMBER),
    **dict.fromkeys(("skipTheLine", "noBatch"), TRUTH),
}
QUEUE = {
    "state": {"enum": ["running", "paused", "draining", "switching_modes"]},
    **dict.fromkeys(("branch", "mode", "directMergeMode", "optimizationMode"), TEXT),
    **dict.fromkeys(("mergeMethod", "testBranchConstructionMode", "enqueueingLabel"), TEXT),
    **dict.fromkeys(("concurrency", "testingTimeoutMinutes", "pendingFailureDepth"), NUMBER),
    **dict.fromkeys(("batchingMaxWaitTimeMinutes", "batchingMinSize"), NUMBER),
    **dict.fromkeys(("bisectionConcurrency", "notReadyTimeoutHours"), NUMBER),
    **dict.fromkeys(("canOptimisticallyMerge", "batch", "createPrsForTestingBranches"), TRUTH),
    **dict.fromkeys(("commentsEnabled", "commandsEnabled", "statusCheckEnabled"), TRUTH),
    **dict.fromkeys(("extensionEnabled", "labelCommandsEnabled", "stateLabelsEnabled"), TRUTH),
    **dict.fromkeys(("allowedBotSubmitters", "batchingRules"), LIST),
    "requiredStatuses": TEXTS,
    "enqueuedPullRequests": {"type": "array", "items": None},
}
DETAILS = {
    **dict.fromkeys(("requiredStatusesSource", "testBranch", "testBranchSha"), TEXT),
    **dict.fromkeys(("createdAt", "status"), TEXT),
    **dict.fromkeys(("checkSuites", "statusChecks", "dependentPrs", "testedPullRequests"), LIST),
    "requiredStatuses": TEXTS,
}


def form(fields: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object with all of these fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}


QUEUE["enqueuedPullRequests"] = {"type": "array", "items": form(SUBMISSION)}


@dataclass(frozen=True)
class Trunk:
    """A client of Trunk."""

    session: aiohttp.ClientSession
    world: Instance

    def named(self, branch: str, **more: Any) -> dict[str, Any]:
        """The fields that every request has."""
        repo = {"host": self.world.host, "owner": self.world.owner, "name": self.world.repo}
        return {"repo": repo, "targetBranch": branch, **more}

    async def post(self, name: str, body: Any, token: str | None = None) -> tuple[int, Any]:
        """Status and body of an answer."""
        headers = {"x-api-token": token or self.world.admin_token}
        url = f"{self.world.url}/v1/{name}"
        async with self.session.post(url, json=body, headers=headers) as answer:
            is_json = "json" in answer.headers["Content-Type"]
            return answer.status, await (
                answer.json(content_type=None) if is_json else answer.text()
            )

    async def read(self, name: str, body: Any, fields: dict[str, Any]) -> Any:
        """An answer, which must have these fields."""
        status, answered = await self.post(name, body)
        assert status == 200, answered
        jsonschema_rs.Draft202012Validator(form(fields)).validate(answered)
        return answered


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with instances.started(tmp_path_factory.mktemp("trunk"), TRUNK) as own:
        yield own


@pytest.fixture
async def trunk(world):
    async with aiohttp.ClientSession() as session:
        yield Trunk(session, world)


async def test_trunk_mq_mcp_reads_queues_pull_requests_and_runs(trunk, world):
    branch = "main"
    assert (await trunk.post("createQueue", trunk.named(branch)))[0] == 200
    empty = await trunk.read("getQueue", trunk.named(branch), QUEUE)
    assert (empty["state"], empty["requiredStatuses"]) == ("running", ["unit"])
    number = await world.open_pull_request(branch)
    about = trunk.named(branch, pr={"number": number})
    assert (await trunk.post("getSubmittedPullRequest", about))[0] == 404
    assert (await trunk.post("submitPullRequest", about))[0] == 200
    assert len((await trunk.read("getQueue", trunk.named(branch), QUEUE))["enqueuedPullRequests"])
    await world.settle()
    record = await trunk.read("getSubmittedPullRequest", about, SUBMISSION)
    assert record["state"] == "merged"
    run = trunk.named(branch, testRunId=record["testRunId"])
    details = await trunk.read("getMergeQueueTestingDetails", run, DETAILS)
    assert details["status"] == "succeeded"


async def test_terraform_creates_changes_and_destroys_a_queue(trunk, world):
    # github.com/trunk-io/terraform-provider-trunk, internal/client/types.go at 07de4d15, and
    # Delete of internal/provider/merge_queue_resource.go at 40143bc1.
    branch = await world.new_branch()
    made = trunk.named(branch, mode="single", concurrency=2)
    assert (await trunk.post("createQueue", made))[0] == 200
    assert (await trunk.post("createQueue", made))[0] == 409
    wanted = {
        **{"mode": "single", "concurrency": 3, "mergeMethod": "squash", "batch": True},
        **{"directMergeMode": "off", "optimizationMode": "off", "requiredStatuses": ["gate"]},
    }
    status, changed = await trunk.post("updateQueue", trunk.named(branch, **wanted))
    assert (status, {name: changed[name] for name in wanted}) == (200, wanted)
    number = await world.open_pull_request(branch)
    about = trunk.named(branch, pr={"number": number})
    assert (await trunk.post("submitPullRequest", about))[0] == 200
    status, refused = await trunk.post("deleteQueue", trunk.named(branch))
    assert (status, refused["code"]) == (400, "queue_not_empty")
    assert (await trunk.post("cancelPullRequest", about))[0] == 200
    await world.settle()
    gone = (200, {"deleted": True, "branch": branch})
    assert await trunk.post("deleteQueue", trunk.named(branch)) == gone
    assert await trunk.post("deleteQueue", trunk.named(branch)) == gone
    assert (await trunk.post("getQueue", trunk.named(branch)))[0] == 404
    elsewhere = {**trunk.named(branch), "repo": {"host": world.host, "owner": "o", "name": "n"}}
    assert (await trunk.post("deleteQueue", elsewhere))[0] == 404


@pytest.mark.parametrize("targets", [["//app", "//lib"], [], "ALL"])
async def test_the_actions_upload_impacted_targets(trunk, world, targets):
    # github.com/trunk-io/merge-action, src/scripts/upload_impacted_targets.sh at 02439be5, which
    # bazel-action shares: the number is a string, and only 200 and 401 are told apart.
    number = await world.open_pull_request("main")
    pull = {"number": str(number), "sha": "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"}
    body = trunk.named("main", pr=pull, impactedTargets=targets)
    await trunk.post("createQueue", trunk.named("main"))
    assert (await trunk.post("setImpactedTargets", body))[0] == 200
    assert (await trunk.post("setImpactedTargets", body, "unknown"))[0] == 401
