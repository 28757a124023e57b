"""Merge a pull request by the client that openapi-python-client made; print what it saw."""

# The client exists only while the test runs.
# mypy: ignore-errors

import json
import sys

from headgate_client import AuthenticatedClient
from headgate_client.api.merge_queue import (
    get_queue,
    get_submitted_pull_request,
    submit_pull_request,
)
from headgate_client.models import (
    GetQueue,
    GetSubmittedPullRequest,
    PullRequest,
    PullRequestToSubmit,
    Repository,
    SubmitPullRequest,
)

ENDED = {"MERGED", "FAILED", "CANCELLED"}

url, token, host, branch, number = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, timeout=60)
repo = Repository(host=host, owner="octo", name="widgets")


def record(asked: int, **more):
    body = GetSubmittedPullRequest(
        repo=repo, target_branch=branch, pr=PullRequest(number=asked), **more
    )
    return get_submitted_pull_request.sync(client=client, body=body)


before = get_queue.sync(client=client, body=GetQueue(repo=repo, target_branch=branch))
made = submit_pull_request.sync(
    client=client,
    body=SubmitPullRequest(
        repo=repo, target_branch=branch, pr=PullRequestToSubmit(number=int(number))
    ),
)
found = record(int(number))
while found.state.value.upper() not in ENDED:
    found = record(int(number), since_version=found.record_version, wait_for=20)
refused = record(4_000_000)
stranger = AuthenticatedClient(base_url=url, token="unknown")
unknown = get_queue.sync(client=stranger, body=GetQueue(repo=repo, target_branch=branch))
print(
    json.dumps(
        {
            "queue": before.state.value,
            "result": made.result,
            "state": found.state.value,
            "landed": bool(found.conclusion.merged_sha),
            "refused": [refused.status, refused.code, bool(refused.detail)],
            "unknown": unknown.split(".")[0],
        }
    )
)
