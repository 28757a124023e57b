"""Events about installations and repositories, as GitHub publishes examples of them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.github import translate
from bot.github.translate import OwnApp
from service.provider.signals import (
    AccessChanged,
    DefaultBranchRenamed,
    Delivery,
    RepositoryAdded,
    RepositoryChanged,
    RepositoryRemoved,
    Signal,
)
from tests.harness import needs

HOST = "github.com"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
TOLD: dict[tuple[str, str], set[type[Signal]]] = {
    ("installation", "created"): {RepositoryAdded},
    ("installation", "deleted"): {AccessChanged},
    ("installation", "suspend"): {AccessChanged},
    ("installation", "unsuspend"): {AccessChanged},
    ("installation", "new_permissions_accepted"): {AccessChanged},
    ("installation_repositories", "added"): {RepositoryAdded},
    ("installation_repositories", "removed"): {RepositoryRemoved},
    ("repository", "created"): {RepositoryAdded},
    ("repository", "edited"): {RepositoryChanged, DefaultBranchRenamed},
    ("repository", "renamed"): {RepositoryChanged},
    ("repository", "privatized"): {RepositoryChanged},
    ("repository", "publicized"): {RepositoryChanged},
    ("repository", "transferred"): {RepositoryRemoved},
}
LISTED = {
    ("installation", "created"): "repositories",
    ("installation_repositories", "added"): "repositories_added",
    ("installation_repositories", "removed"): "repositories_removed",
}


@pytest.fixture(scope="module")
def examples():
    """Every published example, by event and action."""
    needs.needs("assets")
    path = needs.asset("@octokit/webhooks-examples", "api.github.com/index.json")
    found: dict[tuple[str, str | None], list[Any]] = {}
    for event in json.loads(path.read_text("utf-8")):
        for payload in event["examples"]:
            found.setdefault((event["name"], payload.get("action")), []).append(payload)
    return found


def signals_of(event, action, payload):
    delivery = Delivery(HOST, "d-1", event, action, None, json.dumps(payload).encode(), NOW)
    return translate.signals_of(delivery, OwnApp("77", "headgate"))


@pytest.mark.parametrize(("event", "action"), TOLD)
def test_a_published_event_is_understood_by_its_numbers(examples, event, action):
    assert examples[event, action]
    for payload in examples[event, action]:
        told = signals_of(event, action, payload)
        assert {type(one) for one in told} <= TOLD[event, action]
        listed = payload.get(LISTED.get((event, action), ""), None)
        if listed is not None:
            assert [one.where.id.id for one in told] == [str(one["id"]) for one in listed]
        elif event == "repository":
            assert [one.where.id.id for one in told] == [str(payload["repository"]["id"])]
        else:
            owner = str(payload["installation"]["account"]["id"])
            assert [one.owner_id for one in told] == [owner]


def test_every_action_of_these_events_is_in_the_table_or_of_no_concern(examples):
    events = {event for event, _ in TOLD}
    published = {key for key in examples if key[0] in events}
    assert published <= set(translate.TABLE)
