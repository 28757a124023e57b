"""The settings page of a queue: values with their sources, the form, and the replay."""

import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from service.dashboard import page_of_settings, setting_fields, visitors
from service.mergequeue.engine.config import SETTINGS, QueueConfig, changed
from service.mergequeue.engine.model import FileFault, RepositoryFile
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.rules import EntryRule, Period
from service.mergequeue.engine.states import EntryState
from service.mergequeue.wording import settings
from tests.dashboard import queue_stage
from tests.dashboard.queue_stage import TIP, a_queue, at, ended, passed
from tests.dashboard.signing_in import PATH as QUEUE
from tests.dashboard.signing_in import visitor
from tests.dashboard.test_health_page import moved
from tests.dashboard.test_queue_actions import newest

PATH = "/octo/widgets/main/settings"


@pytest.fixture
async def stage(store):
    return await queue_stage.staged(store)


def filed(**given):
    """What a file sets: the size of batches."""
    return RepositoryFile(TIP.sha, "digest", names=("batching_min_size",), **given)


def test_every_setting_with_an_effect_is_in_one_group_and_its_text_reads_back():
    placed = [name for names in setting_fields.GROUPS.values() for name in names]
    assert sorted(placed) == sorted(SETTINGS.keys() - settings.NOT_TOLD)
    config = replace(
        QueueConfig(),
        required_statuses=("test (3.12, linux)", "e2e"),
        commit_body="a\n\nb: c",
        rules=(
            EntryRule("hotfix", when='"hotfix" in labels', priority=0, enter=True),
            EntryRule("weekend", during=Period("2026-11-27T18:00", "UTC", 60), wait_for="it"),
        ),
    )
    texts = {
        name: setting_fields.text_of(own, getattr(config, own))
        for name, own in setting_fields.FIELDS.items()
    }
    changes = setting_fields.changes_of(texts, {})
    assert changes == {name: getattr(config, name) for name in SETTINGS}
    crlf = {name: text.replace("\n", "\r\n") for name, text in texts.items()}
    assert setting_fields.changes_of(crlf, texts) == {}


async def test_values_have_their_default_meaning_and_source(stage):
    fault = FileFault(".github/headgate.yml", 7, "queues.main.batch", "`batch` must be <yes>.")
    value = a_queue(chosen=("concurrency",), file=filed(faults=(fault,), good_commit=TIP.sha))
    await stage.put(value)
    async with stage.browsing() as browser:
        page = await browser.see(PATH, host="localhost")
        queue = await browser.see("/octo/widgets/main", host="localhost")
    assert PATH in queue.links
    assert "headgate.yml, line 7: `batch` must be <yes>." in page.text
    assert "test runs at the same timeconcurrency, default 1" in page.text
    # By the order of precedence, twice by `concurrency`, and by `batch`, which is not the default.
    assert page.text.count("set on the queue") == 4
    assert page.text.count("read-only: set in .github/headgate.yml") == 1
    (locked,) = (given for tag, given in page.tags if given.get("id") == "batchingMinSize")
    assert ("readonly" in locked, "name" in locked) == (True, False)


async def test_a_value_that_is_not_the_default_is_never_called_so(stage):
    # A queue that is made with a concurrency takes it for its searches too.
    config = QueueConfig(concurrency=4, bisection_concurrency=4)
    await stage.put(a_queue(config=config, chosen=("concurrency",)))
    async with stage.browsing() as browser:
        page = await browser.see(PATH, host="localhost")
    of_searches = page.text.split("bisectionConcurrency, default 1")[1]
    assert of_searches.split("Testing timeout")[0].split() == ["set", "on", "the", "queue"]
    assert "\nCI minutes per submitter" in page.text


async def test_the_page_says_what_the_queue_does_and_where_that_comes_from(stage):
    config = QueueConfig(concurrency=5, batch=True, batching_min_size=8, delete_branch=True)
    chosen = ("concurrency", "delete_branch", "fork_policy")
    await stage.put(a_queue(config=config, chosen=chosen, file=filed()))
    async with stage.browsing() as browser:
        page = await browser.see(PATH, host="localhost")
    told = page.text.split("What this queue does")[1].split("Save testing")[0].splitlines()
    assert {
        "Pull requests wait in one line. default",
        "At most 5 test runs at the same time, and 1 that searches for the cause of a failure."
        " set on the queue",
        "Up to 8 pull requests share one test run; a smaller group starts after 5 min."
        " .github/headgate.yml",
        "Each pull request lands as one squashed commit. default",
    } <= set(told)
    assert any(each.startswith("Delete branch: yes (whether Headgate deletes") for each in told)
    marked = [attrs["class"] for tag, attrs in page.tags if attrs.get("class") == "small w odd"]
    assert len(marked) == 3
    options = {attrs["value"] for tag, attrs in page.tags if tag == "option"}
    assert "MERGE_COMMIT" in options
    assert "Squash" in page.text
    assert "no effect" not in page.text


async def eight_merged(stage):
    """Eight submissions that have merged."""
    runs = [passed(nth, (nth,), created_at=at(60 * nth)) for nth in range(1, 9)]
    left = [ended(run.number, run, 3 + run.number) for run in runs]
    ready = EntryState.NOT_READY, EntryState.PENDING, Reason.NOW_READY
    moves = [moved(each.pr, 24 + each.pr, *ready) for each in left]
    await stage.put(a_queue(file=filed()), moves, entries=tuple(left), runs=tuple(runs))


async def test_a_replay_of_rules_says_which_are_left_out(stage):
    await eight_merged(stage)
    rule = urlencode({"rules": '{"name": "hotfix", "when": "only(\\"*.md\\")", "priority": 1}'})
    async with stage.browsing() as browser:
        page = await browser.see(f"{PATH}?{rule}", host="localhost")
    assert "The rule hotfix is not replayed for 8 of them: what it reads is not known." in page.text


async def test_a_replay_of_thirty_days_shows_both_settings(stage):
    await eight_merged(stage)
    async with stage.browsing() as browser:
        page = await browser.see(f"{PATH}?concurrency=8&batch=false", host="localhost")
        title = r"Concurrency 8 and 1 more: P95 [\w ]+ → [\w ]+, CI \S+ %"
        assert re.search(title, page.text), page.text[-2500:]
        assert "Replay of the last 30 days, 8 submissions" in page.text
        assert re.search(r"CI runs per merge \d\.\d\d \d\.\d\d", page.text)
        assert "Save what was tried" in page.text
        page = await browser.see(f"{PATH}?batchingMinSize=8", host="localhost")
        assert "Save what was tried" not in page.text
        page = await browser.see(f"{PATH}?concurrency=0", host="localhost")
        assert "No replay: concurrency must be at least 1" in page.text
        assert any(given.get("value") == "0" for _, given in page.tags)
        page = await browser.see(f"{PATH}?concurency=2", host="localhost")
        assert "Did you mean concurrency?" in page.text
        page = await browser.see(f"{PATH}?concurrency=5", host="localhost")
        assert "Change one to try it" in page.text
        async with stage.runtime.replays:
            page = await browser.see(f"{PATH}?concurrency=8", host="localhost")
        assert "Another replay is running" in page.text


async def test_usual_changes_are_compared_once(stage):
    await eight_merged(stage)
    usual = f"{PATH}?compare=usual"
    async with stage.browsing() as browser:
        page = await browser.see(usual, host="localhost")
        assert "Usual changes, each by itself\n8 submissions in 30 days" in page.text
        row = r"\nConcurrency 8 [\w ]+ min [\w ]+ min [+\u2212]?\d+ %\n"
        assert re.search(row, page.text), page.text[-1500:]
        assert "\nBatches of 8 " in page.text
        assert f"{PATH}?batch=true&batchingMinSize=8#what-if" in page.links
        # The next answer needs no replay: nothing has changed.
        async with stage.runtime.replays:
            again = await browser.see(usual, host="localhost")
        assert again.text == page.text


def test_usual_changes_differ_from_the_settings_in_force():
    for config in (QueueConfig(), QueueConfig(concurrency=5, batch=True, batching_min_size=8)):
        for each in page_of_settings.usual_changes(config).values():
            assert changed(config, each) != config


async def test_without_history_the_page_says_so(stage):
    async with stage.browsing() as browser:
        page = await browser.see(f"{PATH}?concurrency=8", host="localhost")
        missing = await browser.get("/octo/widgets/other/settings", host="localhost")
    assert "there is none to replay" in page.text
    assert missing.status == 404


async def test_an_admin_changes_settings_and_a_refused_value_is_kept(pages):
    async with visitor(pages, "alice", f"{QUEUE}/settings") as browser:
        url = f"{pages.url}{QUEUE}/settings"
        tag = dict(browser.page.form("Sign out").fields)["form_tag"]
        before = (await pages.value()).config
        sent = {
            "form_tag": tag, "action": "save", "group": "group-1",
            "concurrency": "7", "before-concurrency": str(before.concurrency),
            "testingTimeoutMinutes": "5", "before-testingTimeoutMinutes": "5",
        }  # fmt: skip

        async def post(data, origin=pages.url):
            headers = {"Origin": origin}
            async with browser.http.post(
                url, data=data, headers=headers, allow_redirects=False
            ) as answer:
                return answer.status, await answer.text()

        assert "needs admin access" in browser.page.text
        status, text = await post(sent)
        assert (status, "needs admin access" in text) == (403, True)
        await pages.act("role", by="alice", login="alice", role="admin")
        await pages.rest(visitors.KEPT.total_seconds() + 1)
        assert (await post(sent, "https://evil.test"))[0] == 403
        status, text = await post({**sent, "concurrency": "many"})
        assert (status, 'value="many"' in text) == (400, True)
        assert "<strong>Not done:</strong> concurrency must be an integer." in text
        assert (await post(sent))[0] == 303
        after = (await pages.value()).config
        assert after == replace(before, concurrency=7)
        assert (await newest(pages, "queue.update")).actor.login == "alice"
