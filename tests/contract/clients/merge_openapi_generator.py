"""Merge a pull request by the client that openapi-generator made; print what it saw."""

# The client exists only while the test runs.
# mypy: ignore-errors

import json
import sys

from headgate_generated import ApiClient, Configuration
from headgate_generated.api.merge_queue_api import MergeQueueApi
from headgate_generated.exceptions import NotFoundException, UnauthorizedException
from headgate_generated.models.get_queue import GetQueue
from headgate_generated.models.get_submitted_pull_request import GetSubmittedPullRequest
from headgate_generated.models.pull_request import PullRequest
from headgate_generated.models.pull_request_number import PullRequestNumber
from headgate_generated.models.pull_request_to_submit import PullRequestToSubmit
from headgate_generated.models.repository import Repository
from headgate_generated.models.submit_pull_request import SubmitPullRequest

ENDED = {"MERGED", "FAILED", "CANCELLED"}

url, token, host, branch, number = sys.argv[1:]
repo = Repository(host=host, owner="octo", name="widgets")


def of_token(secret: str) -> MergeQueueApi:
    return MergeQueueApi(ApiClient(Configuration(host=url), "x-api-token", secret))


def record(asked: int, **more):
    body = GetSubmittedPullRequest(
        repo=repo, target_branch=branch, pr=PullRequest(number=PullRequestNumber(asked)), **more
    )
    return api.get_submitted_pull_request(body)


api = of_token(token)
before = api.get_queue(GetQueue(repo=repo, target_branch=branch))
made = api.submit_pull_request(
    SubmitPullRequest(
        repo=repo,
        target_branch=branch,
        pr=PullRequestToSubmit(number=PullRequestNumber(int(number))),
    )
)
found = record(int(number))
while found.state.upper() not in ENDED:
    found = record(int(number), since_version=found.record_version, wait_for=20)
refused = unknown = None
try:
    record(4_000_000)
except NotFoundException as problem:
    refused = problem.data
try:
    of_token("unknown").get_queue(GetQueue(repo=repo, target_branch=branch))
except UnauthorizedException as problem:
    unknown = problem.body
print(
    json.dumps(
        {
            "queue": before.state,
            "result": made.result,
            "state": found.state,
            "landed": bool(found.conclusion.merged_sha),
            "refused": [refused.status, refused.code, bool(refused.detail)],
            "unknown": unknown.split(".")[0],
        }
    )
)
