"""`GET /getMergeQueueMetrics`, row by row (docs/reference/metrics.md)."""

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from service.http import openapi
from service.process.api import routes
from tests.contract.api.conftest import made, removed

PATH = "/v1/getMergeQueueMetrics"
ROLLING_LE = ["60", "300", "600", "900", "1800", "3600", "5400", "7200", "+Inf"]
LE = [*ROLLING_LE[:-1], "14400", "28800", "86400", "+Inf"]

ROLLING = {
    "mq_depth_current": ("gauge", []),
    "mq_awaiting_mergeability": ("gauge", []),
    "mq_testing_slots_active": ("gauge", []),
    "mq_pr_conclusions_1h_total": ("gauge", ["conclusion"]),
    "mq_pr_restarts_1h_total": ("gauge", []),
    "mq_pr_wait_duration_1h_seconds": ("histogram", []),
    "mq_pr_test_duration_1h_seconds": ("histogram", []),
    "mq_pr_time_in_queue_1h_seconds": ("histogram", ["conclusion"]),
    "mq_pr_state_duration_1h_seconds": ("histogram", ["state"]),
}
TRUE = {
    "headgate_queue_state": ("gauge", ["state"]),
    "headgate_queue_held": ("gauge", ["reason"]),
    "headgate_queue_pull_requests": ("gauge", ["state"]),
    "headgate_queue_oldest_pull_request_age_seconds": ("gauge", []),
    "headgate_test_slots": ("gauge", ["queue_type"]),
    "headgate_test_slots_in_use": ("gauge", ["queue_type"]),
    "headgate_pull_requests_submitted_total": ("counter", ["channel"]),
    "headgate_pull_requests_left_total": ("counter", ["conclusion", "reason"]),
    "headgate_pull_request_restarts_total": ("counter", ["reason"]),
    "headgate_test_runs_total": ("counter", ["queue_type", "status", "cause"]),
    "headgate_test_runs_reused_total": ("counter", []),
    "headgate_landings_total": ("counter", ["result"]),
    "headgate_landing_proof_mismatches_total": ("counter", []),
    "headgate_external_merges_total": ("counter", []),
    "headgate_wait_duration_seconds": ("histogram", []),
    "headgate_test_duration_seconds": ("histogram", ["queue_type"]),
    "headgate_time_in_queue_seconds": ("histogram", ["conclusion"]),
}
FAMILIES = {
    name: (kind, ["repo", "branch", "queue_type", *more]) for name, (kind, more) in ROLLING.items()
} | {name: (kind, ["host", "repo", "branch", *more]) for name, (kind, more) in TRUE.items()}

SPARSE = {"mq_pr_time_in_queue_1h_seconds", "mq_pr_state_duration_1h_seconds"}
"""Families that show what happened in the last hour, and no zeros of what did not."""


class Page:
    """A page as Prometheus reads it."""

    def __init__(self, body: bytes) -> None:
        self.text = body.decode()
        self.samples = [sample for family in parsed(self.text) for sample in family.samples]

    def of(self, name: str, **labels: str) -> list[float]:
        """The values of the series with these labels, whatever else they carry."""
        return [
            sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def one(self, name: str, **labels: str) -> float:
        """The value of the only such series."""
        (value,) = self.of(name, **labels)
        return value


async def page_of(client, query="", token=None):
    answer = await client.ask("GET", PATH + query, token)
    assert answer.status == 200, answer.json
    return Page(answer.body)


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/openmetrics-text"])
async def test_the_content_type_is_the_same_whoever_asks(client, queue, accept):
    answer = await client.ask("GET", PATH, headers={"Accept": accept})
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    looked = await client.ask("HEAD", PATH)
    assert (looked.status, looked.body) == (200, b"")
    assert looked.headers["Content-Type"] == answer.headers["Content-Type"]


async def test_the_example_of_the_document_is_a_part_of_such_a_page(client, queue):
    page = await page_of(client)
    document = json.loads(openapi.encoded(routes.CONTRACT))
    answer = document["paths"][PATH]["get"]["responses"]["200"]["content"]["text/plain"]
    example = Page(answer["example"].encode())
    heads = [line for line in example.text.splitlines() if line.startswith("#")]
    assert heads
    assert set(heads) <= set(page.text.splitlines())
    for sample in example.samples:
        assert any(
            one.name == sample.name and sample.labels.keys() <= one.labels.keys()
            for one in page.samples
        )


async def test_a_new_queue_shows_every_family_with_its_labels_and_zeros(client, queue):
    page = await page_of(client)
    types = dict(line.split()[2:4] for line in page.text.splitlines() if line.startswith("# TYPE "))
    assert types == {name: kind for name, (kind, _) in FAMILIES.items()} | {
        "headgate_tokens_expiring": "gauge"
    }
    for name, (kind, labels) in FAMILIES.items():
        endings = ["_bucket", "_sum", "_count"] if kind == "histogram" else [""]
        for ending in endings:
            own = [
                sample
                for sample in page.samples
                if sample.name == name + ending and sample.labels["branch"] == queue.branch
            ]
            assert bool(own) is (name not in SPARSE), name
            if name in SPARSE:
                continue
            more = ["le"] if ending == "_bucket" else []
            assert {tuple(sample.labels) for sample in own} == {(*labels, *more)}
    quiet = [sample for sample in page.samples if sample.labels.get("branch") == queue.branch]
    loud = {sample.name for sample in quiet if sample.value}
    assert loud == {"headgate_queue_state", "headgate_test_slots"}
    state = {"branch": queue.branch, "state": "RUNNING"}
    assert page.one("headgate_queue_state", **state) == 1


async def test_buckets_are_those_of_the_contract(client, queue):
    page = await page_of(client)
    for name, (kind, _) in FAMILIES.items():
        bounds = ROLLING_LE if name in ROLLING else LE
        found = [
            sample.labels["le"]
            for sample in page.samples
            if sample.name == f"{name}_bucket" and sample.labels["branch"] == queue.branch
        ]
        assert kind != "histogram" or found == bounds * (len(found) // len(bounds))


@pytest.fixture
async def plain_queue(client, world):
    """A queue whose test branches have no draft pull requests.

    CI begins on the push of a test branch, and again for the draft pull request on it. Where the
    second begins after the first has passed, the landing finds it running and waits for it: then
    a pull request is tested twice, which is right and not what is counted here.
    """
    settings = {"requiredStatuses": ["unit"], "createPrsForTestingBranches": False}
    own = await made(client, world, **settings)
    yield own
    await removed(own)


async def test_what_moves_through_a_queue_is_counted(client, world, plain_queue):
    await plain_queue.submitted()
    broken = await world.open_pull_request(plain_queue.branch, files={"broken.txt": "x\n"})
    await client.done("submitPullRequest", plain_queue.about(broken))
    await world.settle()
    page = await page_of(client)
    here = {"branch": plain_queue.branch}
    assert page.one("headgate_pull_requests_submitted_total", channel="api", **here) == 2
    landed = {"conclusion": "merged", "reason": "landed"}
    failed = {"conclusion": "failed", "reason": "required_status_failed"}
    for ended in (landed, failed):
        assert page.one("headgate_pull_requests_left_total", **ended, **here) == 1
        own = {"conclusion": ended["conclusion"]} | here
        assert sum(page.of("mq_pr_conclusions_1h_total", **own)) == 1
        assert sum(page.of("mq_pr_time_in_queue_1h_seconds_count", **own)) == 1
        assert page.one("headgate_time_in_queue_seconds_count", **own) == 1
    assert page.one("headgate_landings_total", result="landed", **here) == 1
    passed = {"queue_type": "main", "status": "succeeded", "cause": "none"}
    assert page.one("headgate_test_runs_total", **passed, **here) == 1
    assert page.one("headgate_wait_duration_seconds_count", **here) == 2
    assert page.one("headgate_landings_total", result="rejected", **here) == 0
    main = {"queue_type": "main"} | here
    assert page.one("headgate_test_duration_seconds_count", **main) == 2
    assert page.one("mq_pr_test_duration_1h_seconds_count", **main) == 2
    assert page.one("mq_pr_state_duration_1h_seconds_count", state="testing", **main) == 2
    assert page.one("headgate_landing_proof_mismatches_total", **here) == 0
    assert page.one("headgate_external_merges_total", **here) == 0


async def test_what_stands_in_a_queue_is_shown(client, world, queue):
    number = await queue.submitted()
    page = await page_of(client)
    here = {"branch": queue.branch}
    assert page.one("mq_depth_current", queue_type="main", **here) == 1
    assert page.one("mq_testing_slots_active", queue_type="main", **here) == 1
    assert page.one("headgate_test_slots_in_use", queue_type="main", **here) == 1
    assert page.one("headgate_queue_pull_requests", state="TESTING", **here) == 1
    await client.done("cancelPullRequest", queue.about(number))
    hold = await client.done("addQueueHold", queue.named(text="release"))
    await client.done("updateQueue", queue.named(state="PAUSED"))
    page = await page_of(client)
    assert page.one("mq_depth_current", queue_type="main", **here) == 0
    cancelled = {"conclusion": "cancelled", "reason": "api_requested"}
    assert page.one("headgate_pull_requests_left_total", **cancelled, **here) == 1
    assert page.one("headgate_queue_held", reason="freeze", **here) == 1
    assert page.one("headgate_queue_state", state="PAUSED", **here) == 1
    named = queue.named(holdId=hold["hold"]["id"], text="over")
    await client.done("releaseQueueHold", named)


async def test_a_restart_is_counted(client, world, queue):
    number = await queue.submitted()
    await client.done("restartTestsOnPullRequest", queue.about(number))
    await world.settle()
    page = await page_of(client)
    here = {"branch": queue.branch}
    restarted = {"reason": "restarted_by_api"} | here
    assert page.one("headgate_pull_request_restarts_total", **restarted) == 1
    assert page.one("mq_pr_restarts_1h_total", queue_type="main", **here) == 1


async def test_a_repository_is_named_with_its_host(client, queue):
    it = client.instance
    named = f"?repo={it.owner}/{it.repo}&repoHost={it.host.upper()}&more=1"
    assert (await page_of(client, named)).of("headgate_test_slots", branch=queue.branch)
    assert (await page_of(client, "?repoHost=github.com")).of(
        "headgate_test_slots", branch=queue.branch
    )
    gears = await page_of(client, f"?repo={it.owner}/gears&repoHost={it.host}")
    assert not gears.of("headgate_test_slots")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?repo=octo/widgets", "repo needs repoHost beside it"),
        ("?repo=widgets&repoHost=github.com", "owner and a name"),
        ("?repo=&repoHost=github.com", "owner and a name"),
        ("?repo=octo/..&repoHost=github.com", "owner and a name"),
        ("?repo=octo/widgets&repoHost=https://github.com/", "repoHost must be"),
        (
            "?repo=octo/widgets&repo=octo/gears&repoHost=github.com",
            "'repo' was sent more than once",
        ),
        ("?repo=octo/widgets&repoHost=a&repoHost=b", "'repoHost' was sent more than once"),
    ],
)
async def test_a_query_that_is_not_acceptable_is_named(client, query, said):
    answer = await client.ask("GET", PATH + query)
    assert answer.is_problem(400, "invalid_parameter")
    assert said in answer.json["detail"]
    assert "errors" not in answer.json


async def test_what_is_another_tenants_is_as_what_is_missing(client, world, queue):
    it = client.instance
    foreign = await page_of(client, token=world.foreign_token)
    assert not foreign.of("headgate_test_slots")
    narrow = await page_of(client, token=world.narrow_token)
    assert not narrow.of("headgate_test_slots", branch=queue.branch)
    bodies = []
    for token, name in (
        (world.foreign_token, it.repo),
        (world.narrow_token, it.repo),
        (world.admin_token, "nothing"),
    ):
        query = f"?repo={it.owner}/{name}&repoHost={it.host}"
        answer = await client.ask("GET", PATH + query, token)
        assert answer.is_problem(404, "repository_not_found")
        bodies.append(answer.json["detail"].replace(name, "NAME"))
    assert len(set(bodies)) == 1


async def test_the_role_is_read(client, world, queue):
    for token in (world.read_token, world.queue_token):
        assert (await page_of(client, token=token)).of("headgate_test_slots", branch=queue.branch)
    answer = await client.ask("GET", PATH, world.ci_token)
    assert answer.is_problem(403, "missing_role")
    assert (await client.ask("GET", PATH, "")).status == 401
    posted = await client.ask("POST", PATH, json={})
    assert posted.is_problem(405, "method_not_allowed")
    assert posted.headers["Allow"] == "GET, HEAD"


async def test_a_deleted_queue_is_gone_from_the_page(client, world, open_queue):
    branch = await world.new_branch()
    named = client.named(branch)
    await client.done("createQueue", named)
    assert (await page_of(client)).of("headgate_test_slots", branch=branch)
    await client.done("deleteQueue", named)
    assert not (await page_of(client)).of("headgate_test_slots", branch=branch)


async def test_labels_hold_no_text_of_people(client, world, queue):
    number = await world.open_pull_request(queue.branch, title="Zanzibar")
    await client.done("submitPullRequest", queue.about(number))
    page = await page_of(client)
    assert "Zanzibar" not in page.text
    assert "alice" not in page.text
