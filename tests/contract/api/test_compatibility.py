"""Clients of Trunk against a service with `HEADGATE_API_COMPATIBILITY=trunk`.

None of them is published as a package, so their requests and what they expect are written down
here, from their public repositories.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
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

    async def post(
        self, name: str, body: Any, token: str | None = None, **more: str
    ) -> tuple[int, Any]:
        """Status and body of an answer; `more` are headers."""
        headers = {"x-api-token": self.world.admin_token if token is None else token, **more}
        url = f"{self.world.url}/v1/{name}"
        async with self.session.post(url, json=body, headers=headers) as answer:
            is_json = "json" in answer.headers["Content-Type"]
            return answer.status, await (
                answer.json(content_type=None) if is_json else answer.text()
            )

    async def make_queue_of_main(self) -> None:
        """Create the queue of main, unless another test has done so."""
        assert (await self.post("createQueue", self.named("main")))[0] in (200, 409)

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
    await trunk.make_queue_of_main()
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
    await trunk.make_queue_of_main()
    assert (await trunk.post("setImpactedTargets", body))[0] == 200
    assert (await trunk.post("setImpactedTargets", body, "unknown"))[0] == 401


@pytest.mark.parametrize("run_id", ["", "991"])
async def test_nx_action_names_its_run_beside_its_token(trunk, world, run_id):
    # github.com/trunk-io/nx-action, src/upload_impacted_targets.py at 4423a72b: both headers are
    # always sent, and are empty if there is nothing to say. Its caller tells 200 and 401 apart.
    number = await world.open_pull_request("main")
    pull = {"number": str(number), "sha": "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"}
    body = trunk.named("main", pr=pull, impactedTargets=["app", "lib"])
    await trunk.make_queue_of_main()
    named = {"x-forked-workflow-run-id": run_id}
    assert (await trunk.post("setImpactedTargets", body, **named))[0] == 200
    assert (await trunk.post("setImpactedTargets", body, "", **named))[0] == 401


class PostHog:
    """The import of PostHog's data warehouse.

    github.com/PostHog/posthog, .../data_imports/sources/trunk_io/trunk_io.py at 2832cc5b.
    """

    def __init__(self, trunk: Trunk) -> None:
        repo = trunk.named("main")["repo"]
        self._trunk = trunk
        self._about = {"repo": repo, "org_url_slug": trunk.world.owner}

    async def tests(self, name: str, field: str, **more: str) -> list[Any]:
        """The rows of all pages of a list, 100 at a time; an empty token ends it."""
        rows: list[Any] = []
        page_token = ""
        while True:
            query = {"page_size": 100, "page_token": page_token}
            body = {**self._about, **more, "page_query": query}
            status, answered = await self._trunk.post(f"flaky-tests/{name}", body)
            assert status == 200, answered
            rows += answered[field]
            page_token = (answered.get("page") or {}).get("next_page_token") or ""
            if not page_token:
                return rows

    async def failing(self, now: datetime) -> list[Any]:
        """The tests that failed in 30 days, seven days at a time."""
        rows: list[Any] = []
        start = now - timedelta(days=30)
        while start < now:
            end = min(start + timedelta(days=7), now)
            span = {"start_time": rfc_3339(start), "end_time": rfc_3339(end)}
            rows += await self.tests("list-failing-tests", "tests", **span)
            start = end
        return rows

    async def pull_requests(self, since: datetime) -> list[Any]:
        """The pull requests of the queue; `cursor` is sent once there is one."""
        body: dict[str, Any] = {**self._trunk.named("main"), "take": 1, "since": rfc_3339(since)}
        rows: list[Any] = []
        while True:
            status, answered = await self._trunk.post("listPullRequests", body)
            assert status == 200, answered
            rows += answered["pullRequests"]
            if not answered.get("nextCursor"):
                return rows
            body["cursor"] = answered["nextCursor"]


def rfc_3339(at: datetime) -> str:
    """A time to the second, as PostHog sends it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_posthog_imports_tests_and_pull_requests(trunk, world):
    posthog, now = PostHog(trunk), world.now()
    ids = await world.take_in(*(f"test_{nth}" for nth in range(101)))
    failing = await posthog.failing(now + timedelta(minutes=1))
    assert sorted(row["id"] for row in failing) == sorted(ids)
    for status in ("FLAKY", "BROKEN"):
        assert await posthog.tests("list-unhealthy-tests", "tests", status=status) == []
    assert await posthog.tests("list-quarantined-tests", "quarantined_tests") == []

    await trunk.make_queue_of_main()
    numbers = [await world.open_pull_request("main") for _ in range(3)]
    for number in numbers:
        about = trunk.named("main", pr={"number": number})
        assert (await trunk.post("submitPullRequest", about))[0] == 200
    await world.settle()
    ended = await posthog.pull_requests(now)
    assert sorted(row["prNumber"] for row in ended) == numbers
    assert {row["state"] for row in ended} == {"merged"}
