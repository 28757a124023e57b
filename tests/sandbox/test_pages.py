"""The pages: what they show, what their forms do, and that nothing in them is alive."""

import re

import aiohttp
import pytest

from bot.sandbox.pages import rendered
from tests.sandbox.client import REPO


@pytest.fixture
async def browser(sandbox):
    """A browser without JavaScript: it keeps cookies and follows redirects."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(sandbox.url, cookie_jar=jar) as session:

        async def go(path, form=None):
            sent = session.get(path) if form is None else session.post(path, data=form)
            async with sent as answer:
                return answer.status, await answer.text()

        yield go


@pytest.fixture
async def pull(sandbox):
    await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, title="Add <b>a</b>")
    await sandbox.settle()


async def test_repositories_history_and_pull_requests_are_shown(browser, sandbox, pull):
    status, html = await browser("/")
    assert (status, f'href="/{REPO}"' in html) == (200, True)
    _, html = await browser(f"/{REPO}")
    assert "Initial commit" in html
    _, html = await browser(f"/{REPO}/pulls")
    assert "Add &lt;b&gt;a&lt;/b&gt;" in html


async def test_a_pull_request_shows_its_checks_files_and_state(browser, pull):
    _, html = await browser(f"/{REPO}/pull/1")
    for words in ("unit", "success", "a.txt", "It can be merged.", "Comment as alice"):
        assert words in html


@pytest.mark.parametrize("path", ["/no/repo", f"/{REPO}/pull/9"])
async def test_what_is_not_there_is_404(browser, path):
    assert (await browser(path))[0] == 404


async def test_a_check_run_has_a_page_with_its_title_and_text(browser, sandbox, app, pull):
    head = sandbox.repository(REPO).issues[1].pull.head_sha
    output = {"title": "2 of 9 failed", "summary": "See **below**", "text": "FAILED <test_a>"}
    body = {"name": "slow", "head_sha": head, "conclusion": "failure", "output": output}
    made = await app.call("POST", f"/repos/{REPO}/check-runs", body)
    page = f"/{REPO}/runs/{made.body['id']}"
    _, html = await browser(f"/{REPO}/pull/1")
    assert f'href="{page}"' in html
    status, html = await browser(page)
    assert status == 200
    for words in ("<h2>2 of 9 failed</h2>", "<strong>below</strong>", "FAILED &lt;test_a&gt;"):
        assert words in html


async def test_a_check_run_that_is_not_there_is_a_page_that_leads_back(browser):
    status, html = await browser(f"/{REPO}/runs/1")
    assert status == 404
    assert f"Nothing is at /{REPO}/runs/1." in html
    assert '<a href="/">Back' in html


async def test_a_page_that_follows_reloads_and_has_nothing_to_write_in(browser, pull):
    reload = '<meta http-equiv="refresh"'
    _, html = await browser(f"/{REPO}/pull/1")
    assert (reload in html, "<textarea" in html, 'name="path"' in html) == (False, True, True)
    status, html = await browser(f"/{REPO}/pull/1?follow=1")
    assert (status, f'{reload} content="2">' in html) == (200, True)
    assert ("<textarea" in html, 'name="path"' in html) == (False, False)


async def test_what_an_app_opened_is_folded_away(browser, sandbox, app, pull):
    files = {"b.txt": "b"}
    await sandbox.act("push", "alice", REPO, branch="robot", files=files, message="Add b")
    body = {"title": "By the App", "head": "robot", "base": "main"}
    await app.call("POST", f"/repos/{REPO}/pulls", body)
    _, html = await browser(f"/{REPO}/pulls")
    ours, _, made = html.partition('<details class="made">')
    assert "1 made by Apps" in made
    assert ("By the App" in ours, "By the App" in made) == (False, True)
    assert ("Add &lt;b&gt;" in ours, "Add &lt;b&gt;" in made) == (True, False)


async def test_a_file_from_a_form_has_bare_newlines(browser, sandbox, pull):
    form = {"act": "push", "number": "1", "path": "g.txt", "text": "one\r\ntwo\r\nthree"}
    await browser(f"/{REPO}/pull/1/acts", form)
    repository = sandbox.repository(REPO)
    head = repository.issues[1].pull.head_sha
    assert repository.git.objects.file_at(head, "g.txt") == b"one\ntwo\nthree\n"


async def test_who_comments_is_led_to_the_comment(browser, sandbox, http, pull):
    form = {"act": "comment", "number": "1", "body": "/merge"}
    acts = f"{sandbox.url}/{REPO}/pull/1/acts"
    async with http.post(acts, data=form, allow_redirects=False) as answer:
        place = answer.headers["Location"]
    comment = sandbox.repository(REPO).issues[1].comments[0]
    assert place == f"/{REPO}/pull/1#issuecomment-{comment.id}"
    _, html = await browser(f"/{REPO}/pull/1")
    assert f'id="issuecomment-{comment.id}"' in html


async def test_a_comment_is_written_as_the_chosen_person(browser, sandbox, pull):
    _, html = await browser("/_sandbox/person", {"as": "carol", "back": f"/{REPO}/pull/1"})
    assert "Comment as carol" in html
    form = {"act": "comment", "number": "1", "body": "hello **there**"}
    status, html = await browser(f"/{REPO}/pull/1/acts", form)
    assert status == 200
    assert "<strong>there</strong>" in html
    comment = sandbox.repository(REPO).issues[1].comments[0]
    assert comment.author.login == "carol"


async def test_the_way_back_never_leaves_the_sandbox(browser):
    status, html = await browser("/_sandbox/person", {"as": "bob", "back": "//evil.example/"})
    assert (status, "Repositories" in html) == (200, True)


async def test_forms_open_push_approve_and_merge(browser, sandbox):
    form = {"act": "open", "title": "By form", "path": "f.txt", "text": "one\n"}
    _, html = await browser(f"/{REPO}/acts", form)
    assert "By form" in html
    acts = f"/{REPO}/pull/1/acts"
    await browser(acts, {"act": "push", "number": "1", "path": "g.txt", "text": "two\n"})
    await browser("/_sandbox/person", {"as": "bob"})
    await browser(acts, {"act": "approve", "number": "1"})
    await browser(acts, {"act": "draft", "number": "1", "draft": "true"})
    status, html = await browser(acts, {"act": "merge", "number": "1", "method": "squash"})
    assert (status, "Pull Request is still a draft" in html) == (422, True)
    await browser(acts, {"act": "draft", "number": "1", "draft": "false"})
    _, html = await browser(acts, {"act": "merge", "number": "1", "method": "squash"})
    assert "merged" in html
    repository = sandbox.repository(REPO)
    assert repository.git.objects.file_at(repository.git.branch("main"), "g.txt") == b"two\n"
    assert repository.issues[1].pull.reviews[0].author.login == "bob"


async def test_a_box_of_a_comment_is_a_button_that_ticks_it(browser, sandbox, app, pull):
    body = 'Status\n\n- [ ] Take "it" out <!-- headgate:box=cancel -->\n'
    await app.call("POST", f"/repos/{REPO}/issues/1/comments", {"body": body})
    _, html = await browser(f"/{REPO}/pull/1")
    button = re.search(r'<button class="box" form="(tick-\d+)" name="box" value="([^"]*)"', html)
    assert button is not None
    assert f'<form id="{button[1]}"' in html
    assert "headgate:box" not in html
    comment = sandbox.repository(REPO).issues[1].comments[0]
    form = {"act": "tick_checkbox", "number": "1", "comment": str(comment.id)}
    await browser(f"/{REPO}/pull/1/acts", {**form, "box": 'Take "it" out'})
    assert '- [x] Take "it" out' in comment.body


async def test_a_button_of_a_check_run_is_pressed(browser, sandbox, app, pull, receiver):
    button = {"label": "Try again", "description": "Once more", "identifier": "retry"}
    head = sandbox.repository(REPO).issues[1].pull.head_sha
    body = {"name": "Headgate (main)", "head_sha": head, "conclusion": "failure"}
    await app.call("POST", f"/repos/{REPO}/check-runs", {**body, "actions": [button]})
    _, html = await browser(f"/{REPO}/pull/1")
    assert "Try again" in html
    form = {"act": "press_button", "number": "1", "check": "Headgate (main)", "button": "retry"}
    await browser(f"/{REPO}/pull/1/acts", form)
    await sandbox.settle()
    assert "check_run.requested_action" in receiver.events()


@pytest.mark.parametrize(
    "body",
    [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "[x](javascript:alert(1))",
        "<details onclick=alert(1)><summary>x</summary></details>",
        "- [ ] <script>alert(1)</script>",
        '- [ ] "><script>alert(1)</script>',
    ],
)
def test_nothing_alive_comes_through_a_comment(body):
    html = rendered(body, "f")
    assert not re.search(r"<script|<img|<details [^>]|href=\"javascript", html)


def test_a_comment_may_fold_and_tabulate():
    html = rendered(
        "<details><summary>Log</summary>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n</details>"
    )
    assert "<details><summary>Log</summary>" in html
    assert "<td>1</td>" in html


async def test_every_page_forbids_scripts(sandbox, http, pull):
    for path in ("/", f"/{REPO}", f"/{REPO}/pulls", f"/{REPO}/pull/1"):
        async with http.get(f"{sandbox.url}{path}") as answer:
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert "<script" not in await answer.text()


async def test_the_style_sheet_and_the_faces_are_served(browser):
    assert (await browser("/_sandbox/sandbox.css"))[0] == 200
    assert "<circle" in (await browser("/_sandbox/avatar/9001"))[1]


def test_boxes_after_a_folded_list_are_a_list_of_their_own():
    html = rendered("<details><summary>History</summary>\n\n- one\n</details>\n\n- [ ] Go\n", "f")
    folded, _, boxes = html.partition("</details>")
    assert folded.count("<ul>") == folded.count("</ul>") == 1
    assert boxes.count("<ul>") == boxes.count("</ul>") == 1
