"""`webhook add|list|remove|test`: what is sent, what is printed, how it ends."""

import json

import pytest

from bot.cli import app

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


def test_endpoints_are_listed_with_why_they_are_disabled(api, capsys):
    gone = {"state": "disabled", "disabled_reason": "It answered 410: gone."}
    limited = ENDPOINT | gone | {"repositories": [WIDGETS]}
    api.says("/webhooks/list-endpoints", {"endpoints": [ENDPOINT, limited]})
    assert headgate("list") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "queue.*" in out
    assert "octo/widgets" in out
    assert "never" in out
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


def test_what_names_no_repository_is_refused_before_anybody_is_asked(api):
    assert headgate("add", ENDPOINT["url"], "--repo", "widgets") == 2
    assert api.asked == []


def test_a_refusal_is_one_line_with_its_exit_code(api, capsys):
    api.refuses("/webhooks/create-endpoint", 422, "webhook_url_refused", "It may not be called.")
    assert headgate("add", "http://10.0.0.1/") == 6
    assert capsys.readouterr().err == "headgate: It may not be called.\n"
    api.refuses("/webhooks/delete-endpoint", 404, "webhook_endpoint_not_found")
    assert headgate("remove", ID) == 4
