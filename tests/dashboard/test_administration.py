"""Tokens, webhooks and the audit log on pages, for people who administer an organization."""

import json
import re

import pytest

from service.accounts import access, tokens
from service.accounts.store import access as stored_access
from service.accounts.tokens import TokenRequest
from service.provider.values import Repository
from service.testhealth.operations import flags
from service.testhealth.operations.flags import FlagRequest
from service.vocabulary import SYSTEM, Flag, RepoId, RepoRef, Role
from tests.dashboard.browsing import browsing, token_of
from tests.dashboard.conftest import ALICE
from tests.dashboard.signing_in import visitor
from tests.harness.receiver import receiving, verified
from tests.operations import upload_stage

TOKENS = "/settings/octo"
WEBHOOKS = f"{TOKENS}/webhooks"


async def test_the_first_account_is_alice(pages):
    account = pages.sandbox.world.account("alice")
    assert str(account.id) == ALICE


async def test_an_admin_creates_a_token_sees_it_once_and_revokes_it(pages):
    async with visitor(pages, "alice", "/settings") as browser:
        page = await browser.follow("octo")
        page = await browser.press(
            "Create the token",
            name="CI of widgets",
            role="ci",
            repositories="octo/widgets",
            open_entries="6",
            ci_minutes="600",
        )
        assert page.status == 200
        (secret,) = re.findall(r"hgt_\w{60}", page.text)
        self_url = f"{pages.url}/v1/tokens/self"
        async with browser.http.get(self_url, headers={"x-api-token": secret}) as answer:
            body = await answer.json()
        assert (body["name"], body["role"]) == ("CI of widgets", "ci")
        assert (body["open_entries"], body["ci_minutes"]) == (6, 600)
        page = await browser.open(f"{pages.url}{TOKENS}")
        assert secret not in page.text
        assert "CI of widgets" in page.text
        assert "6 pull requests at a time, 600 CI minutes a day" in page.text
        page = await browser.press("Revoke…")
        assert "Revoke the token?" in page.text
        page = await browser.press("Revoke the token")
        assert (page.status, "Ended" in page.text) == (200, True)
        async with browser.http.get(self_url, headers={"x-api-token": secret}) as answer:
            assert answer.status == 401
        page = await browser.open(f"{pages.url}/activity?actor=alice&action=token.")
        assert "token.create" in page.text
        assert "token.revoke" in page.text
        assert "person, dashboard" in page.text
        assert "session.open" not in page.text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "", "role": "ci"}, "name"),
        ({"name": "kept", "role": "owner"}, "role"),
        ({"name": "kept", "role": "ci", "days": "1000"}, "expires_in_days"),
        ({"name": "kept", "role": "ci", "open_entries": "5001"}, "open_entries"),
        ({"name": "kept", "role": "ci", "ci_minutes": "a day"}, "ci_minutes"),
        ({"name": "kept", "role": "ci", "repositories": "widgets"}, "repositories"),
        ({"name": "kept", "role": "ci", "repositories": "octo/none"}, "octo/none"),
    ],
)
async def test_a_wrong_field_of_a_token_is_named(pages, fields, words):
    async with visitor(pages, "alice", TOKENS) as browser:
        page = await browser.press("Create the token", **fields)
        assert page.status in (400, 404)
        assert words in page.text.partition("Create a token")[0]
        assert dict(page.form("Create the token").fields)["name"] == fields["name"]


async def test_a_token_of_another_organization_is_not_revoked_here(pages):
    asked = TokenRequest("github.localhost", "elsewhere", "theirs", Role.READ)
    theirs = await tokens.create_token(pages.runtime, asked, SYSTEM)
    async with visitor(pages, "alice", TOKENS) as browser:
        tag = dict(browser.page.form("Sign out").fields)["form_tag"]
        data = {"form_tag": tag, "action": "revoke", "id": theirs.view.id, "confirmed": "yes"}
        sent = browser.http.post(browser.page.url, data=data, headers={"Origin": pages.url})
        async with sent as answer:
            assert answer.status == 404
    (kept,) = await tokens.list_tokens(pages.runtime, "github.localhost", "elsewhere")
    assert kept.revoked_at is None


async def test_who_administers_nothing_sees_nothing_and_changes_nothing(pages):
    async with visitor(pages, "bob", "/settings") as browser:
        assert "You administer no organization here" in browser.page.text
        tag = dict(browser.page.form("Sign out").fields)["form_tag"]
        for path in (TOKENS, WEBHOOKS, "/activity", "/activity?export=jsonl"):
            assert (await browser.open(f"{pages.url}{path}")).status == 404
        data = {"form_tag": tag, "action": "create", "name": "x", "role": "admin"}
        sent = browser.http.post(f"{pages.url}{TOKENS}", data=data, headers={"Origin": pages.url})
        async with sent as answer:
            assert answer.status == 404
    assert await tokens.list_tokens(pages.runtime, "github.localhost", "octo") == ()


async def test_an_endpoint_in_the_format_of_slack_is_created_and_shown(pages):
    async with visitor(pages, "alice", WEBHOOKS) as browser, receiving() as receiver:
        await browser.press(
            "Create the endpoint", url=receiver.url, events="queue.*", format="slack"
        )
        page = await browser.follow(receiver.url)
        assert "Format Slack" in page.text
        await browser.press("Send a test")
        assert receiver.got[-1].json["text"].startswith("This is a test by Headgate")
        await browser.press("Delete…")
        await browser.press("Delete the endpoint")


async def test_an_endpoint_is_created_tested_rotated_replayed_and_deleted(pages):
    async with visitor(pages, "alice", WEBHOOKS) as browser, receiving() as receiver:
        page = await browser.press("Create the endpoint", url="http://10.0.0.1/x", events="*")
        assert (page.status, "may not be called" in page.text) == (422, True)
        assert dict(page.form("Create the endpoint").fields)["url"] == "http://10.0.0.1/x"
        page = await browser.press("Create the endpoint", url=receiver.url, events="queue.* nope")
        assert (page.status, "Not done: events/1 must be one of" in page.text) == (400, True)
        page = await browser.press(
            "Create the endpoint", url=receiver.url, events="queue.*, webhook.test"
        )
        (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]+", page.text)
        page = await browser.follow(receiver.url)
        page = await browser.press("Send a test")
        assert "The test was delivered: the receiver answered 200" in page.text
        assert verified(receiver.got[-1], secret)["type"] == "webhook.test"
        await browser.press("Rotate the secret…")
        page = await browser.press("Rotate the secret")
        (fresh,) = re.findall(r"whsec_[A-Za-z0-9+/=]+", page.text)
        assert fresh != secret
        page = await browser.press("Send again")
        assert page.status == 200

        async def is_there_again():
            return len(receiver.got) == 2

        await pages.until(is_there_again)
        assert verified(receiver.got[-1], fresh)["type"] == "webhook.test"
        assert receiver.got[0].id == receiver.got[1].id
        page = await browser.press("Disable")
        assert "Disabled by alice" in page.text
        page = await browser.press("Enable")
        assert "Enabled" in page.text
        receiver.answers = [500]
        page = await browser.press("Send a test")
        assert "The test was not delivered" in page.text
        await browser.press("Delete…")
        page = await browser.press("Delete the endpoint")
        assert "There is no endpoint." in page.text


async def test_the_log_is_filtered_paged_and_exported(pages):
    for number in range(60):
        asked = TokenRequest("github.localhost", "octo", f"token {number}", Role.READ)
        await tokens.create_token(pages.runtime, asked, SYSTEM)
    async with visitor(pages, "alice", "/activity") as browser:
        page = await browser.open(f"{pages.url}/activity?action=token.")
        assert page.text.count("token.create") == 50
        page = await browser.follow("Older entries")
        assert page.text.count("token.create") == 10
        assert "Older entries" not in page.links
        export = f"{pages.url}/activity?action=token.&export=jsonl"
        async with browser.http.get(export) as answer:
            assert answer.headers["Content-Type"].startswith("application/jsonl")
            assert "attachment" in answer.headers["Content-Disposition"]
            rows = [json.loads(line) for line in (await answer.text()).splitlines()]
        assert len(rows) == 60
        assert [row["id"] for row in rows] == sorted((row["id"] for row in rows), reverse=True)
        assert rows[0]["data"]["name"] == "token 59"
        for query, words in (
            ("since=yesterday", "since must be a day"),
            ("cursor=x", "not a valid page token"),
            (f"actor={'x' * 300}", "actor must have"),
        ):
            page = await browser.open(f"{pages.url}/activity?{query}")
            assert (page.status, words in page.text) == (400, True)
        page = await browser.open(f"{pages.url}/activity?until=2020-01-01")
        assert "No entry matches." in page.text
        page = await browser.open(f"{pages.url}/activity?subject=%25")
        assert "No entry matches." in page.text


async def test_the_log_names_no_test_of_a_repository_that_its_reader_may_not_read(pages):
    ids = await flagged_in(pages, "widgets", "hidden")
    async with visitor(pages, "alice", "/activity") as browser:
        page = await browser.open(f"{pages.url}/activity?action=test.flag")
    assert "total_widgets in octo/widgets" in page.text
    assert f"test/{ids['hidden']}" in page.text
    assert "total_hidden" not in page.text


async def test_the_log_is_shown_without_names_of_tests_while_rights_cannot_be_read(pages):
    ids = await flagged_in(pages, "widgets")
    async with visitor(pages, "alice", "/settings") as browser:
        await pages.fault({"path": "*/collaborators/*"}, "fail_before", status=500)
        page = await browser.open(f"{pages.url}/activity?action=test.flag")
    assert f"test/{ids['widgets']}" in page.text
    assert "total_widgets" not in page.text


async def flagged_in(pages, *names):
    """Flag a test in each repository; GitHub knows only `widgets`."""
    asked = TokenRequest("github.localhost", "octo", "ci", Role.QUEUE)
    secret = (await tokens.create_token(pages.runtime, asked, SYSTEM)).secret
    caller = await access.look_up(pages.runtime, secret)
    ids = {}
    for name in names:
        ref = RepoRef("github.localhost", "octo", name)
        repository = await pages.runtime.store.run(_repository, ref, caller.org_id)
        stage = upload_stage.Stage(pages.runtime, pages.clock, repository, caller)
        await stage.ran({f"total_{name}": "P"})
        ids[name] = (await stage.case(f"total_{name}")).id
        flag = FlagRequest(ids[name], Flag.FLAKY, "real clock")
        await flags.put(pages.runtime, repository, flag, SYSTEM)
    return ids


def _repository(session, ref, org_id):
    known = stored_access.repository_by_ref(session, org_id, ref)
    seen = Repository(
        ref, RepoId(ref.host, f"id of {ref.name}"), "7", "main", frozenset(), False, ""
    )
    return known or stored_access.upsert_repository(session, org_id, seen)


async def test_a_token_administers_as_far_as_it_reaches(store):
    stage = await upload_stage.staged(store)
    whole = await token_of(stage.runtime, Role.ADMIN)
    narrow = await token_of(stage.runtime, Role.ADMIN, repositories=(stage.repository.ref,))
    reader = await token_of(stage.runtime, Role.READ)
    stranger = await token_of(stage.runtime, Role.ADMIN, "elsewhere")
    async with browsing(stage.runtime) as browser:
        assert "a reader" in (await browser.see(TOKENS, password=whole)).text
        assert "token.create" in (await browser.see("/activity", password=whole)).text
        page = await browser.see(TOKENS, password=narrow)
        assert "1 API token of octo" in page.text
        assert (await browser.get("/activity", password=narrow)).status == 404
        for token in (reader, stranger):
            assert (await browser.get(TOKENS, password=token)).status == 404
            assert "octo" not in (await browser.see("/settings", password=token)).text
        assert (await browser.get("/activity", password=reader)).status == 404
        assert "octo" not in (await browser.see("/activity", password=stranger)).text
        for path in ("/settings", "/activity"):
            assert (await browser.get(path)).status == 401
            reply = await browser.get(path, "Content-Length: 0", method="POST", password=whole)
            assert reply.status == 405
