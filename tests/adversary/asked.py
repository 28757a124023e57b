"""What an admin asks of a running service about the tests of its repository."""

import json
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.contract.instance import Instance


def post(instance: Instance, name: str, **body: object) -> dict[str, Any]:
    """The answer of an endpoint about tests. Raises HTTPError when it refuses."""
    repo = {"host": instance.host, "owner": instance.owner, "name": instance.repo}
    sent = json.dumps({"repo": repo, "org_url_slug": instance.owner, **body}).encode()
    headers = {"x-api-token": instance.admin_token, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{instance.url}/v1/flaky-tests/{name}", sent, headers)
    with urllib.request.urlopen(request) as answer:
        answered: dict[str, Any] = json.loads(answer.read())
        return answered


def quarantine(instance: Instance, name: str) -> None:
    """Quarantine the failing test of this name."""
    post(instance, "update-settings", quarantine_enabled=True)
    span = {"start_time": days_from_now(-1), "end_time": days_from_now(1)}
    page = {"page_size": 100, "page_token": ""}
    found = post(instance, "list-failing-tests", page_query=page, **span)
    tests = next(value for value in found.values() if isinstance(value, list))
    test_id = next(test["id"] for test in tests if test["name"] == name)
    wish = {"override": "ALWAYS_QUARANTINE", "reason": "waits on the clock"}
    post(instance, "set-quarantine-override", test_id=test_id, **wish)


def days_from_now(days: int) -> str:
    """An instant as the API takes it."""
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def tip(instance: Instance) -> str:
    """The commit at the tip of the repository's default branch."""
    assert instance.world is not None
    return str(instance.world.repository.git.branch("main"))
