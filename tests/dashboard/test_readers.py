"""Who may see a page: by token of role read, or by being on this machine.

See docs/design/security.md 6.
"""

import pytest

from bot import listening, settings
from service.accounts.page_addresses import home
from service.accounts.store import audit
from service.dashboard import readers
from service.errors import StartRefused
from service.http.health import Readiness
from service.limits import Rate
from service.runtime import DashboardAuth, Options, Rates
from service.vocabulary import RepoRef, Role
from tests.dashboard.browsing import browsing, parsed, token_of
from tests.operations import upload_stage
from tests.operations.upload_stage import HOST

UNKNOWN = "hgt_7hQ2mX9aLk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1jpYjl"
SECRET_NAME = "a name that strangers must not read"


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


@pytest.fixture
async def paths(stage):
    """The pages of a test and of its upload."""
    answer = await stage.ran({SECRET_NAME: "F"})
    case = await stage.case(SECRET_NAME)
    return (f"/octo/widgets/tests/{case.id}", f"/octo/widgets/uploads/{answer.upload_id}")


@pytest.mark.parametrize("packed", ["", "w\u00e9", "\udcff", "dTr/", "A" * 2000])
def test_what_is_no_password_is_none(packed):
    assert readers.password_of(f"Basic {packed}") == ""


@pytest.mark.parametrize("role", [Role.READ, Role.QUEUE, Role.ADMIN])
async def test_a_token_that_may_read_sees_the_pages_of_its_organization(stage, paths, role):
    token = await token_of(stage.runtime, role)
    async with browsing(stage.runtime, token) as browser:
        for path in paths:
            assert SECRET_NAME in (await browser.see(path)).text


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Authorization: Basic",
        "Authorization: Basic !!!",
        "Authorization: Basic dXNlcjo=",
        "Authorization: Basic dXNlcjpub3QgYSB0b2tlbg==",
        "Authorization: Basic /w==",
        f"Authorization: Basic {'A' * 2000}",
        f"Authorization: Bearer {UNKNOWN}",
        f"x-api-token: {UNKNOWN}",
    ],
)
async def test_without_a_token_every_page_asks_for_one_whether_it_is_there_or_not(
    stage, paths, line
):
    missing = "/octo/nothing/tests/06cb6db5-f807-5198-b072-af67a0636f8a"
    async with browsing(stage.runtime) as browser:
        bodies = set()
        for path in (*paths, missing, "/octo/widgets/tests/x"):
            reply = await browser.get(path, *([line] if line else []))
            assert reply.status == 401
            assert reply.headers["www-authenticate"] == 'Basic realm="Headgate", charset="UTF-8"'
            assert SECRET_NAME not in reply.body.decode()
            bodies.add(reply.body)
        assert len(bodies) == 1


async def test_what_a_token_may_not_see_is_as_if_it_were_not_there(stage, paths):
    other = await upload_stage.staged(stage.runtime.store, "gadgets")
    narrow = (other.repository.ref,)
    ours = await token_of(stage.runtime, Role.READ)
    strangers = (
        await token_of(stage.runtime, Role.ADMIN, "elsewhere"),
        await token_of(stage.runtime, Role.READ, repositories=narrow),
    )
    async with browsing(stage.runtime) as browser:
        nothing = await browser.get(paths[0].replace("widgets", "none"), password=ours)
        assert nothing.status == 404
        for token in strangers:
            for path in paths:
                reply = await browser.get(path, password=token)
                assert (reply.status, reply.body) == (404, nothing.body)


async def test_a_thing_of_one_repository_is_not_shown_under_another(stage, paths):
    await upload_stage.staged(stage.runtime.store, "gadgets")
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        for path in paths:
            assert (await browser.get(path.replace("widgets", "gadgets"))).status == 404


async def test_a_token_of_ci_may_not_read_pages_and_the_try_is_written_down(stage, paths):
    token = await token_of(stage.runtime, Role.CI)
    async with browsing(stage.runtime, token) as browser:
        assert (await browser.get(paths[0])).status == 403
    rows = await stage.runtime.store.read(audit.newest, stage.repository.org_id, 1)
    assert (rows[0].decision, rows[0].subject) == ("denied", "page")


async def test_guesses_are_counted_with_those_at_endpoints(stage, paths):
    rates = Rates(auth_failure=Rate(1, 2))
    async with browsing(stage.runtime, UNKNOWN, rates=rates) as browser:
        assert (await browser.get(paths[0])).status == 401
        await browser.wire.send(
            f"GET /v1/tokens/self HTTP/1.1\r\nHost: x\r\nx-api-token: {UNKNOWN}\r\n\r\n".encode()
        )
        assert (await browser.wire.reply()).status == 401
        refused = await browser.get(paths[0])
        assert refused.status == 429
        assert int(refused.headers["retry-after"]) >= 1


async def test_until_the_recovery_is_over_no_page_is_shown(stage, paths):
    token = await token_of(stage.runtime, Role.READ)
    for auth in (DashboardAuth.TOKEN, DashboardAuth.LOOPBACK):
        at_start = browsing(stage.runtime, token, Readiness(), dashboard_auth=auth, main_host=HOST)
        async with at_start as browser:
            reply = await browser.get(paths[0], host="localhost")
            assert (reply.status, reply.headers["retry-after"]) == (503, "5")


async def test_on_this_machine_pages_are_shown_to_whoever_comes_under_its_own_name(stage, paths):
    here = browsing(stage.runtime, dashboard_auth=DashboardAuth.LOOPBACK, main_host=HOST)
    async with here as browser:
        for host in ("localhost", "localhost:8642", "127.0.0.1:8642", "[::1]:8642"):
            assert SECRET_NAME in (await browser.see(paths[0], host=host)).text
        for host in ("queue.example.org", "127.0.0.1.example.org", "evil.test:8642"):
            reply = await browser.get(paths[0], host=host)
            assert reply.status == 421
            assert SECRET_NAME not in reply.body.decode()
        missing = paths[0].replace("widgets", "none")
        assert (await browser.get(missing, host="localhost")).status == 404


PASSED_ON = [
    "X-Forwarded-For: 203.0.113.9",
    "X-Forwarded-Proto: https",
    "x-forwarded-host: queue.example.org",
    "Forwarded: for=203.0.113.9",
    "Via: 1.1 proxy",
    "X-Real-IP: 203.0.113.9",
    "CF-Connecting-IP: 203.0.113.9",
    "True-Client-IP: 203.0.113.9",
    "X-Client-IP: 203.0.113.9",
    "X-Cluster-Client-IP: 203.0.113.9",
    "Fly-Client-IP: 203.0.113.9",
    "X-Envoy-External-Address: 203.0.113.9",
    "X-Original-Forwarded-For: 203.0.113.9",
    "X-Forwarded-For:",
]


@pytest.mark.parametrize("header", PASSED_ON)
async def test_a_request_that_a_proxy_passed_on_is_never_of_this_machine(stage, paths, header):
    here = browsing(stage.runtime, dashboard_auth=DashboardAuth.LOOPBACK, main_host=HOST)
    async with here as browser:
        for method in ("GET", "POST"):
            more = [header, *(["Content-Length: 0"] if method == "POST" else [])]
            reply = await browser.get(paths[0], *more, host="127.0.0.1:8642", method=method)
            assert reply.status == 421
            assert SECRET_NAME not in reply.body.decode()
        assert "proxy passed it on" in reply.body.decode()


async def test_a_request_of_http_1_0_is_not_of_this_machine_because_plain_proxies_send_it(
    stage, paths
):
    here = browsing(stage.runtime, dashboard_auth=DashboardAuth.LOOPBACK, main_host=HOST)
    async with here as browser:
        head = f"GET {paths[0]} HTTP/1.0\r\nHost: 127.0.0.1:8642\r\nConnection: close\r\n\r\n"
        await browser.wire.send(head.encode())
        assert (await browser.wire.reply()).status == 421


async def test_with_pages_off_there_are_none(stage, paths):
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token, dashboard_auth=DashboardAuth.OFF) as browser:
        reply = await browser.get(paths[0])
        assert (reply.status, reply.headers["content-type"]) == (
            404,
            "application/problem+json; charset=utf-8",
        )


async def test_other_methods_are_refused_and_pages_without_forms_are_only_read(stage, paths):
    with_forms, without = paths
    async with browsing(stage.runtime) as browser:
        for path, methods, allowed in (
            (without, ("POST", "PUT", "DELETE"), "GET, HEAD"),
            (with_forms, ("PUT", "DELETE"), "GET, HEAD, POST"),
        ):
            for method in methods:
                reply = await browser.get(path, "Content-Length: 0", method=method)
                assert (reply.status, reply.headers["allow"]) == (405, allowed)
        assert (await browser.get(with_forms, "Content-Length: 0", method="POST")).status == 401


async def test_a_head_request_gets_the_head_of_the_page(stage, paths):
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        page, head = await browser.get(paths[0]), await browser.get(paths[0], method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == page.headers["content-length"]


@pytest.mark.parametrize(
    "path",
    [
        "/octo/widgets/tests/none",
        "/octo/widgets/tests/%00",
        "/octo/widgets/uploads/06cb6db5-f807-5198-b072-af67a0636f8a",
        "/~elsewhere.test/octo/widgets/tests/06cb6db5-f807-5198-b072-af67a0636f8a",
    ],
)
async def test_what_is_not_there_has_a_page_that_says_so(stage, path):
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        reply = await browser.get(path)
    assert reply.status == 404
    assert "There is no such page" in parsed(reply.body).text


@pytest.mark.parametrize("path", ["/v1/x/tests/y", "/static/x/tests/y", "/DOCS/x/uploads/y"])
async def test_paths_of_our_own_are_no_pages(stage, path):
    async with browsing(stage.runtime) as browser:
        reply = await browser.get(path)
    assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (
        404,
        "application/problem+json",
    )


async def test_a_page_stands_under_its_host_too(stage, paths):
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token, main_host="github.com") as browser:
        assert (await browser.get(paths[0])).status == 404
        page = await browser.see(f"/~{HOST}{paths[0]}")
    assert [link for link in page.links if link.startswith(f"/~{HOST}/octo/widgets/uploads/")]


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        (RepoRef("github.com", "octo", "widgets"), "/octo/widgets"),
        (RepoRef("ghe.test", "octo", "widgets"), "/~ghe.test/octo/widgets"),
        (RepoRef("github.com", "Docs", "widgets"), "/~github.com/Docs/widgets"),
    ],
)
def test_an_address_has_the_host_where_it_would_mean_another_place(ref, path):
    assert home(Options("0", main_host="github.com"), ref) == path


@pytest.mark.parametrize(
    ("host", "is_this_machine"),
    [
        ("localhost", True),
        ("x.localhost:1", True),
        ("127.0.0.53", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost.example.org", False),
        ("10.0.0.1:8642", False),
        ("", False),
        ("127.1", False),
    ],
)
def test_only_names_of_this_machine_are_its_own(host, is_this_machine):
    assert readers.is_loopback(host) is is_this_machine


def readers_of(**given):
    return listening.readers_of(settings.alone(**given))


def test_without_a_setting_readers_are_asked_for_a_token_unless_nobody_else_can_come():
    here = "http://127.0.0.1:8642"
    assert readers_of() is DashboardAuth.TOKEN
    assert readers_of(public_url=here) is DashboardAuth.LOOPBACK
    assert readers_of(public_url=here, host="0.0.0.0") is DashboardAuth.TOKEN
    assert readers_of(public_url="https://queue.example.org") is DashboardAuth.TOKEN
    assert readers_of(public_url=here, dashboard_auth="off") is DashboardAuth.OFF


def test_people_sign_in_with_github_once_the_secret_of_the_app_is_known():
    client = {"github_client_id": "Iv1.x", "github_client_secret": "secret"}
    there = "https://queue.example.org"
    assert readers_of(public_url=there, **client) is DashboardAuth.GITHUB
    assert readers_of(public_url=there, github_client_id="Iv1.x") is DashboardAuth.TOKEN
    assert readers_of(public_url="http://queue.example.org", **client) is DashboardAuth.TOKEN
    assert readers_of(**client) is DashboardAuth.TOKEN
    assert readers_of(public_url=there, dashboard_auth="token", **client) is DashboardAuth.TOKEN
    assert readers_of(public_url="http://127.0.0.1:1", **client) is DashboardAuth.LOOPBACK


@pytest.mark.parametrize(
    "given", [{}, {"public_url": "https://queue.example.org"}, {"host": "0.0.0.0"}]
)
def test_nobody_is_let_in_unasked_where_others_can_come(given):
    with pytest.raises(StartRefused, match="HEADGATE_DASHBOARD_AUTH: loopback lets in whoever"):
        readers_of(dashboard_auth="loopback", **given)


def test_a_sign_in_that_is_not_there_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("HEADGATE_DASHBOARD_AUTH", "proxy")
    with pytest.raises(StartRefused, match=r"_AUTH: is not available; use github, token"):
        settings.read()


FROM_A_BROWSER = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.mark.parametrize("path", ["/nowhere", "/octo/widgets/main/3", "/settings/octo/nothing"])
async def test_a_person_at_an_unknown_address_gets_a_page(stage, path):
    async with browsing(stage.runtime) as browser:
        reply = await browser.get(path, FROM_A_BROWSER)
    assert (reply.status, reply.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such page" in parsed(reply.body).text


@pytest.mark.parametrize(
    ("path", "lines", "more", "auth"),
    [
        ("/nowhere", (), {}, DashboardAuth.TOKEN),
        ("/v1/nowhere", (FROM_A_BROWSER,), {}, DashboardAuth.TOKEN),
        ("/nowhere", (FROM_A_BROWSER,), {"method": "POST"}, DashboardAuth.TOKEN),
        ("/nowhere", (FROM_A_BROWSER,), {}, DashboardAuth.OFF),
    ],
)
async def test_a_program_at_an_unknown_address_gets_a_problem(stage, path, lines, more, auth):
    async with browsing(stage.runtime, dashboard_auth=auth) as browser:
        reply = await browser.get(path, *lines, **more)
    assert (reply.status, reply.headers["content-type"]) == (
        404,
        "application/problem+json; charset=utf-8",
    )
