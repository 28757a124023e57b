"""`webhook add|list|remove|test`: what is sent, what is printed, how it ends."""

import json

import pytest

from bot.cli import app
from service.notifications.messages import EVENTS

ID = "3f1c7b64-0a52-4b40-8a35-c4bb6d1c2a77"
ENDPOINT = {
    "id": ID,
    "url": "https://hooks.example.org/x",
    "events": ["queue.*"],
    "repositories": None,
    "description": "",
    "state": "enabled",
    "disabled_reason": None,
    "last_success_at": None,
    "last_failure_at": None,
    "created_at": "2026-03-02T14:00:00.000Z",
}
WIDGETS = {"host": "github.com", "owner": "octo", "name": "widgets"}
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def headgate(*arguments):
    return app.run(["webhook", *arguments])


def test_an_endpoint_is_added_and_its_secret_stands_alone_on_stdout(api, capsys):
    api.says("/webhooks/create-endpoint", ENDPOINT | {"secret": SECRET})
    assert headgate("add", ENDPOINT["url"], "--event", "queue.*", "--repo", "octo/widgets") == 0
    said = capsys.readouterr()
    assert said.out == f"{SECRET}\n"
    assert ID in said.err
    assert api.asked[0][1] == {
        "url": ENDPOINT["url"],
        "events": ["queue.*"],
        "description": "",
        "repositories": [WIDGETS],
    }


def test_without_events_it_hears_of_everything(api, capsys):
    api.says("/webhooks/create-endpoint", ENDPOINT | {"secret": SECRET})
    assert headgate("add", ENDPOINT["url"], "--description", "ops", "--json") == 0
    sent = {"url": ENDPOINT["url"], "events": ["*"], "description": "ops"}
    assert api.asked[0][1] == sent
    assert json.loads(capsys.readouterr().out)["secret"] == SECRET


def test_slack_hears_by_default_of_what_people_act_on(api):
    api.says("/webhooks/create-endpoint", ENDPOINT | {"format": "slack", "secret": SECRET})
    assert headgate("add", ENDPOINT["url"], "--format", "slack") == 0
    sent = api.asked[0][1]
    assert sent["format"] == "slack"
    assert "pull_request.failed" in sent["events"]
    assert set(sent["events"]) < set(EVENTS)


def test_endpoints_are_listed_with_why_they_are_disabled(api, capsys):
    gone = {"state": "disabled", "disabled_reason": "It answered 410: gone."}
    limited = ENDPOINT | gone | {"repositories": [WIDGETS]}
    limited |= {"last_success_at": "2026-03-02T14:00:00.000Z"}
    api.says("/webhooks/list-endpoints", {"endpoints": [ENDPOINT, limited]})
    assert headgate("list") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "queue.*" in out
    assert "octo/widgets" in out
    assert "never" in out
    assert "2026-03-02 14:00 UTC" in out
    assert headgate("list", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["endpoints"]) == 2


def test_an_endpoint_is_removed(api, capsys):
    api.says("/webhooks/delete-endpoint", {"deleted": True})
    assert headgate("remove", ID) == 0
    assert api.asked[0][1] == {"id": ID}
    assert capsys.readouterr().out == f"Removed {ID}\n"
    assert headgate("remove", ID, "--json") == 0


@pytest.mark.parametrize(("error", "code"), [(None, 0), ("It answered 500.", 1)])
def test_a_test_ends_by_whether_it_arrived(api, capsys, error, code):
    made = {"message_id": "msg_1", "status_code": 200, "duration_ms": 7, "error": error}
    api.says("/webhooks/test-endpoint", made)
    assert headgate("test", ID) == code
    out = capsys.readouterr().out
    assert out == ("Arrived: 200 after 7 ms\n" if error is None else f"Did not arrive: {error}\n")
    assert headgate("test", ID, "--json") == code


def test_a_secret_is_rotated_and_stands_alone_on_stdout(api, capsys):
    api.says("/webhooks/rotate-secret", {"secret": SECRET})
    assert headgate("rotate", ID) == 0
    assert api.asked[-1][1] == {"id": ID}
    assert capsys.readouterr().out == f"{SECRET}\n"
    assert headgate("rotate", ID, "--overlap-hours", "0") == 0
    assert api.asked[-1][1] == {"id": ID, "overlap_hours": 0}


def test_the_log_shows_how_deliveries_ended(api, capsys):
    attempt = {"at": "2026-03-02T14:00:00.000Z", "status_code": 500, "duration_ms": 7}
    ended = [attempt | {"error": "It answered 500."}]
    failed = {"message_id": "msg_1", "event": "queue.held", "state": "failed", "attempts": ended}
    waiting = {"message_id": "msg_2", "event": "queue.held", "state": "pending", "attempts": []}
    api.says("/webhooks/list-deliveries", {"deliveries": [failed, waiting]})
    assert headgate("log", ID, "--state", "failed", "--event", "queue.held") == 0
    filters = {"state": "failed", "event": "queue.held"}
    assert api.asked[-1][1] == {"endpoint_id": ID, "take": 100} | filters
    assert capsys.readouterr().out.splitlines()[1:] == [
        "msg_1    queue.held  failed   1         2026-03-02 14:00 UTC  It answered 500.",
        "msg_2    queue.held  pending  0         never",
    ]


def test_messages_are_sent_again(api, capsys):
    api.says("/webhooks/replay", {"queued": 2})
    assert headgate("replay", ID, "--message", "msg_1", "--delivered") == 0
    assert api.asked[-1][1] == {
        "endpoint_id": ID,
        "message_id": "msg_1",
        "include_delivered": True,
    }
    assert capsys.readouterr().out == "Sending again: 2\n"
    since = ("--since", "2026-03-02T08:00:00Z", "--until", "2026-03-02T09:00:00Z")
    assert headgate("replay", ID, *since) == 0
    assert api.asked[-1][1]["until"] == since[-1]
    assert headgate("replay", ID) == 2


def test_what_names_no_repository_is_refused_before_anybody_is_asked(api):
    assert headgate("add", ENDPOINT["url"], "--repo", "widgets") == 2
    assert api.asked == []


def test_a_refusal_is_one_line_with_its_exit_code(api, capsys):
    api.refuses("/webhooks/create-endpoint", 422, "webhook_url_refused", "It may not be called.")
    assert headgate("add", "http://10.0.0.1/") == 6
    assert capsys.readouterr().err == "headgate: It may not be called.\n"
    api.refuses("/webhooks/delete-endpoint", 404, "webhook_endpoint_not_found")
    assert headgate("remove", ID) == 4
