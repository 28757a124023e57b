"""Names and texts of strangers on pages: shown as text, whatever they hold (F97, F98)."""

import re
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from service.dashboard import filters, rendering
from service.http import documents
from service.mergequeue.engine import targets
from service.mergequeue.engine.config import Mode, QueueConfig
from service.mergequeue.engine.model import Detail, Hold, Named
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.reasons.record import HoldScope
from service.testhealth.operations import flags, overrides, tickets
from service.testhealth.operations.flags import FlagRequest
from service.testhealth.operations.overrides import OverrideRequest
from service.testhealth.operations.tickets import TicketLink
from service.testhealth.reports.results import Fault, FileStatus
from service.testhealth.store import cases
from service.vocabulary import Actor, ActorKind, Channel, CheckOutcome, Flag, Override, Role
from tests.dashboard import queue_stage
from tests.dashboard.browsing import browsing, parsed, token_of
from tests.operations import upload_stage
from tests.operations.upload_stage import NOW, a_file

SCRIPT = "<script>alert(1)</script>"
TEXTS = (
    SCRIPT,
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></h1><base href=//evil.test>",
    "{{ 7 * 7 }}{% raw %}{# no #}",
    "&lt;b&gt; &amp;lt;",
    "javascript:alert(1)",
    "--><svg/onload=alert(1)>",
    "\u202egnp.exe\u2066 \u200bzero\u200d width\ufeff",
    "\x1b[31mred\x1b[0m \x07 bell",
    "x" * 1200,
)
ALLOWED = {
    *("dialog", "kbd", "small"),
    *("html", "head", "meta", "title", "link", "body", "header", "main", "section", "h1", "h2"),
    *("p", "span", "a", "bdi", "code", "dl", "div", "dt", "dd", "ol", "ul", "li", "time"),
    *("script", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "strong", "h3"),
    *(
        "nav",
        "footer",
        "br",
        "pre",
        "text",
        "line",
        "svg",
        "defs",
        "pattern",
        "symbol",
        "path",
        "circle",
        "rect",
        "use",
        "b",
        "form",
        "input",
        "button",
        "g",
        "label",
        "select",
        "option",
    ),
}
ATTRIBUTES = {
    *("lang", "charset", "name", "content", "rel", "href", "class", "id", "datetime", "scope"),
    *("data-l", "aria-label", "aria-labelledby", "aria-hidden", "aria-current", "aria-live"),
    *("role", "tabindex", "title", "data-key", "transform", "overflow", "text-anchor", "x1", "x2"),
    *(
        "src",
        "defer",
        "hidden",
        "data-live",
        "y1",
        "y2",
        "aria-valuemin",
        "aria-valuemax",
        "aria-valuenow",
    ),
    *("viewbox", "d", "cx", "cy", "r", "x", "y", "rx", "width", "height", "focusable", "fill"),
    *("stroke", "stroke-width", "stroke-linecap", "stroke-dasharray", "opacity"),
    *("patternunits", "patterntransform"),
    *("type", "disabled", "method", "action", "value", "selected", "maxlength", "required"),
    *("data-as", "data-at", "data-but", "data-label"),
    *("for", "placeholder", "open", "preserveaspectratio", "size", "data-keys"),
}
LINK = re.compile(
    r"https://github\.test/[\w/.~%-]*|/octo/widgets/(tests|uploads)/[0-9a-f-]{36}|/|/docs/api|#\w+|/activity|/settings|/help|/mine|/wall"
    r"|/octo/widgets/(main(/pull/\d+|/pulls|/runs|/health|/doctor|/settings(\?compare=usual\#usual)?)?|runs/run-\d+|tests(/slowest|/costs|/quality)?|uploads)"
)
UNSEEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\ufeff\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


def check(page, html):
    """Nothing on the page but what our templates put there."""
    check_tags(page, html)
    assert "49" not in page.text.replace("<id>", "")


def check_tags(page, html):
    """The same of pages that have numbers of their own."""
    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert {name for _, attrs in page.tags for name in attrs} <= ATTRIBUTES
    assert page.comments == []
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert all(LINK.fullmatch(link) for link in page.links)
    assert not UNSEEN.search(html.decode())


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
async def test_what_a_report_says_is_shown_as_text(stage, text):
    case = upload_stage.a_case(text, "F", classname=text, parent=text, file=text)
    case = case._replace(
        explicit_attempts=(case.explicit_attempts[0]._replace(message=text, error_type=text),)
    )
    fault = Fault(text, 1, 1)
    file = a_file({}, text, cases=(case,), status=FileStatus.PARTIAL, fault=fault)
    answer = await stage.send(
        [file],
        branch=text,
        job=text,
        variant=text,
        machine=text,
        run_id=text,
        run_url=text,
        ran_at=NOW,
    )
    token = await token_of(stage.runtime, Role.READ)
    failure = answer.failures[0]
    async with browsing(stage.runtime, token) as browser:
        for path in (f"uploads/{answer.upload_id}", f"tests/{failure.test_id}"):
            reply = await browser.get(f"/octo/widgets/{path}")
            assert reply.status == 200
            check(page := parsed(reply.body), reply.body)
            assert filters.shown(text) in page.text


@pytest.mark.parametrize("text", TEXTS[:8], ids=range(8))
async def test_what_people_say_is_shown_as_text(stage, text):
    await stage.ran({"total": "F"}, ran_at=NOW)
    test_id = (await stage.case("total")).id
    somebody = Actor(ActorKind.PERSON, text, "101", Channel.API)
    here = stage.repository
    wish = OverrideRequest(test_id, Override.NEVER_QUARANTINE, text)
    await overrides.put(stage.runtime, here, wish, somebody)
    await flags.put(stage.runtime, here, FlagRequest(test_id, Flag.BROKEN, text), somebody)
    await tickets.link(stage.runtime, here, TicketLink(test_id, text, None), somebody)
    await stage.runtime.store.run(_own, here.id, text)
    token = await token_of(stage.runtime, Role.READ)
    async with browsing(stage.runtime, token) as browser:
        reply = await browser.get(f"/octo/widgets/tests/{test_id}")
    check(page := parsed(reply.body), reply.body)
    assert page.text.count(filters.shown(text)) >= 5


LONG = "&<b>x</b>" * 550
PEOPLE_WRITE = (*TEXTS, "\u05e9\u05dc\u05d5\u05dd \U0001f389 \u0627\u0644", LONG)


@pytest.mark.parametrize("text", PEOPLE_WRITE, ids=range(len(PEOPLE_WRITE)))
async def test_what_people_write_on_pull_requests_is_shown_as_text(store, text):
    queue = await queue_stage.staged(store)
    run = queue_stage.a_run(1, (7,))
    check = queue_stage.a_check(text, CheckOutcome.FAILED, raw=text, url=text)
    run = replace(run, checks=(*run.checks, check), branch=text)
    broken = Detail(text=text, checks=(Named(text, text),), paths=(text,))
    entries = [
        *queue_stage.in_run(run, 1, title=text, author=text),
        queue_stage.an_entry(8, title=text, held_by=(7,), detail=broken),
        queue_stage.an_entry(9, title=text, state=EntryState.NOT_READY, unmet=UNMET, seq=None),
    ]
    touched = targets.of([text])
    entries = [replace(each, targets=touched, wide=touched) for each in entries]
    pause = {"state": QueueState.PAUSED, "state_reason": text}
    hold = Hold("h", HoldReason.FREEZE, HoldScope.BOTH, queue_stage.person(text), text, NOW)
    left = queue_stage.ended(5, run, 3, title=text, detail=broken, state=EntryState.CANCELLED)
    left = replace(left, reason=Reason.USER_REQUESTED, canceller=queue_stage.person(text))
    for mode in Mode:
        held = {"config": QueueConfig(mode=mode), "holds": (hold,), **pause}
        await queue.put(queue_stage.a_queue(entries, [run], **held), entries=(left,))
        left = replace(left, id=f"{left.id}x")
        async with queue.browsing() as browser:
            for path in ("/", *(f"/octo/widgets/{each}" for each in QUEUE_PATHS)):
                reply = await browser.get(path, host="localhost")
                assert reply.status == 200, path
                check_tags(page := parsed(reply.body), reply.body)
                if path != "/":
                    assert filters.shown(text) in page.text


UNMET = (Reason.REVIEW_REQUIRED,)
QUEUE_PATHS = ("main", "main/pull/7", "main/pull/8", "main/pull/5", "runs/run-1", "main/pulls")


def _own(session, repository_id, text):
    owners = cases.cases.update().values(owners=orjson.dumps([text]).decode())
    session.execute(owners.where(cases.cases.c.repository_id == repository_id))


async def test_every_page_says_the_same_to_browsers(stage):
    answer = await stage.ran({"total": "F"})
    token = await token_of(stage.runtime, Role.READ)
    paths = (f"/octo/widgets/uploads/{answer.upload_id}", "/octo/widgets/tests/none")
    async with browsing(stage.runtime) as browser:
        for path in paths:
            for password in (token, ""):
                told = (await browser.get(path, password=password)).headers
                assert told["content-security-policy"] == (
                    "default-src 'none'; script-src 'self'; style-src 'self'; "
                    "img-src 'self' data:; connect-src 'self'; form-action 'self'; "
                    "base-uri 'none'; frame-ancestors 'none'"
                )
                assert told["x-content-type-options"] == "nosniff"
                assert told["referrer-policy"] == "same-origin"
                assert told["cross-origin-opener-policy"] == "same-origin"
                assert told["cache-control"] == "no-store"
                assert told["content-type"] == "text/html; charset=utf-8"
                assert told["strict-transport-security"] == "max-age=31536000"
    async with browsing(stage.runtime, public_url="http://127.0.0.1:8642") as browser:
        assert "strict-transport-security" not in (await browser.get(paths[0])).headers


async def test_the_style_sheet_is_there(stage):
    async with browsing(stage.runtime) as browser:
        reply = await browser.get(documents.address("pages.css"))
    assert (reply.status, reply.headers["content-type"]) == (200, "text/css; charset=utf-8")


def sources() -> list[Path]:
    """Templates, and what they are filled by."""
    return [*rendering.TEMPLATES.glob("*"), *rendering.TEMPLATES.parent.glob("*.py")]


FORBIDDEN = re.compile(
    r"\|\s*safe\b|Markup|autoescape\s+(false|off)|autoescape=False|<script(?! src=)|<style"
    r"|\sstyle=.?[\"']|\son\w+=[\w\"']"
)


def test_no_template_marks_a_text_as_safe_or_has_script_or_style_of_its_own():
    found = [path.name for path in sources() if FORBIDDEN.search(path.read_text("utf-8"))]
    assert len(sources()) > 5
    assert not found
    for planted in (
        "{{ x|safe }}",
        "Markup(x)",
        '<p style="">',
        "<b onclick=x>",
        "<style>",
        "<script>",
    ):
        assert FORBIDDEN.search(planted)


@pytest.mark.parametrize(
    ("url", "is_linked"),
    [
        ("https://github.com/octo/widgets/actions/runs/1", True),
        ("http://127.0.0.1:8643/octo/widgets", True),
        ("http://github.com/", False),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        ("data:text/html,x", False),
        ("//evil.test/", False),
        ("https:///x", False),
        ("https://user@evil.test/", False),
        ("https://[::1", False),
        ("https://a.test/\n", False),
        ("https://xn--\u202e.test/", False),
        ("", False),
        (None, False),
    ],
)
def test_only_addresses_of_the_web_become_links(url, is_linked):
    assert (filters.outside(url) is not None) is is_linked
