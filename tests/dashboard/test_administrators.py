"""Who administers every organization: by number, by login, and by the set-up page."""

from dataclasses import replace

import pytest

from bot import settings as all_settings
from bot.setup import first_queue, sessions
from service.accounts import administrators
from service.accounts.store import audit
from service.vocabulary import Actor, ActorKind
from tests.dashboard.conftest import ALICE
from tests.dashboard.signing_in import AGREE, LINK, person, visitor
from tests.harness.machine import free_port
from tests.harness.world import WorldOptions

TOKENS = "/settings/octo"
HOST = "github.localhost"


@pytest.fixture
def admins():
    return ""


@pytest.fixture
def world_options(admins):
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    named = {"admins": admins} if admins else {}
    return WorldOptions(
        settings={"port": port, "public_url": address, "dashboard_auth": "github", **named}
    )


async def status_of(pages, login):
    async with visitor(pages, login, TOKENS) as browser:
        return browser.page.status


async def with_link(pages, browser, folder):
    """The set-up page, in a browser that used a link."""
    settings = all_settings.alone(data_dir=str(folder))
    token = sessions.new_link(settings, pages.clock.now())
    await browser.open(sessions.link_of(pages.url, token))
    return await browser.press("Begin")


def of(login, number):
    return Actor(ActorKind.PERSON, login, number)


@pytest.mark.parametrize("admins", ["Alice", "@alice", f"bob, {ALICE}"])
async def test_an_administrator_is_named_by_login_or_number(pages):
    assert await status_of(pages, "alice") == 200
    assert await status_of(pages, "carol") == 404


@pytest.mark.parametrize("admins", ["alice"])
async def test_a_login_stands_for_the_account_that_signs_in_first_also_when_it_is_renamed(pages):
    runtime = pages.runtime
    assert await status_of(pages, "alice") == 200
    renamed, newer = of("alice-w", ALICE), of("alice", "77")
    await administrators.note_sign_in(runtime, HOST, newer)
    assert await administrators.is_administrator(runtime, HOST, renamed)
    assert not await administrators.is_administrator(runtime, HOST, newer)
    assert not await administrators.is_administrator(runtime, "elsewhere.test", renamed)
    rows = await runtime.store.read(audit.of_deployment, administrators.BY_LOGIN)
    assert [(row.subject, row.actor.id, row.data) for row in rows] == [
        (f"{HOST}/alice", ALICE, {"id": ALICE})
    ]


@pytest.mark.parametrize("admins", ["alice"])
async def test_a_login_that_was_never_signed_in_under_names_nobody(pages):
    assert not await administrators.is_administrator(pages.runtime, HOST, of("alice", ALICE))
    assert not await administrators.is_administrator(pages.runtime, HOST, of("alice", ""))


@pytest.mark.parametrize("admins", ["alice"])
async def test_a_login_that_is_named_again_stands_for_the_account_that_signs_in_next(pages):
    assert await status_of(pages, "alice") == 200
    older, newer = of("alice", ALICE), of("alice", "77")
    named = pages.runtime
    for admins, is_older in (({"alice"}, True), ({"bob"}, False), ({"alice"}, False)):
        started = replace(named, options=replace(named.options, admins=frozenset(admins)))
        await administrators.end_unnamed(started)
        assert await administrators.is_administrator(named, HOST, older) is is_older
    await administrators.note_sign_in(named, HOST, newer)
    assert await administrators.is_administrator(named, HOST, newer)
    assert not await administrators.is_administrator(named, HOST, older)
    rows = await named.store.read(audit.of_deployment, administrators.ENDED)
    assert [(row.subject, row.data) for row in rows] == [(f"{HOST}/alice", {"id": ALICE})]


@pytest.mark.parametrize("admins", ["77"])
async def test_digits_are_a_number_and_never_a_login(pages):
    await administrators.note_sign_in(pages.runtime, HOST, of("77", "5"))
    assert not await administrators.is_administrator(pages.runtime, HOST, of("77", "5"))


async def test_whoever_has_a_set_up_link_signs_in_and_becomes_the_administrator(pages, tmp_path):
    async with person(pages, "alice") as browser:
        page = await with_link(pages, browser, tmp_path)
        page = await browser.follow(LINK)
        page = await browser.press(AGREE)
        assert page.url == f"{pages.url}{first_queue.PATH}"
        assert (await browser.open(f"{pages.url}{TOKENS}")).status == 404
        await browser.open(f"{pages.url}{first_queue.PATH}")
        page = await browser.press("Make alice an administrator")
        assert "alice administers this deployment" in page.text
        assert (await browser.open(f"{pages.url}{TOKENS}")).status == 200
        page = await browser.open(f"{pages.url}/activity?action=administrator.")
        assert f"{HOST}/alice" in page.text
    assert await status_of(pages, "carol") == 404


async def test_a_person_without_a_set_up_link_names_nobody(pages):
    async with visitor(pages, "carol", "/") as browser:
        address = f"{pages.url}{first_queue.ADMINISTRATOR}"
        async with browser.http.post(address, data={"person": "1"}) as answer:
            assert answer.status == 403
    assert await status_of(pages, "carol") == 404


async def test_the_form_names_the_account_that_it_showed_and_comes_from_our_page(pages, tmp_path):
    async with visitor(pages, "alice", "/") as browser:
        await with_link(pages, browser, tmp_path)
        for changed in ({"person": "77"}, {"csrf": "wrong"}):
            shown = browser.page
            await browser.press("Make alice an administrator", **changed)
            browser.page = shown
        assert (await browser.open(f"{pages.url}{TOKENS}")).status == 404


@pytest.mark.parametrize("admins", ["bob"])
async def test_the_setting_decides_alone_once_it_is_set(pages, tmp_path):
    alice = of("alice", ALICE)
    await administrators.add(pages.runtime, HOST, alice, first_queue.OPERATOR)
    assert not await administrators.is_administrator(pages.runtime, HOST, alice)
    async with visitor(pages, "alice", "/") as browser:
        page = await with_link(pages, browser, tmp_path)
    assert "administrator" not in page.words
