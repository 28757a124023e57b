"""`headgate doctor --live --record`: a recording that can be sent, with no name left in it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot import wiring
from bot.github import anonymizing, limits, live, recording
from bot.github.anonymizing import Anonymizer
from bot.github.reading import Fields, listed_pull_of
from bot.github.translate import OwnApp, signals_of
from bot.github.wire import Answer, Exchange
from service.provider.errors import Gone
from service.provider.signals import BranchMoved, Delivery, PullRequestChanged
from service.vocabulary import RepoRef
from tests.github import corpus
from tests.github.table import on_table
from tests.harness import asking, needs
from tests.harness.expect import expect
from tests.harness.world import REPO, World, WorldOptions, settings_for
from tests.provider.stage import START
from tests.recorded import recordings

CANARY = "canary"
"""A part of everything that people named or wrote in these tests."""

OF_GITHUB = anonymizing.ENUMS | anonymizing.API_WORDS | anonymizing.REF_WORDS | anonymizing.LEVELS
HEADGATES = re.compile(r"headgate/(merge|temp)/live/\S*")


@pytest.fixture
def world_options() -> WorldOptions:
    """A check whose name is a canary."""
    ci = 'triggers: {push: ["headgate/merge/**"], pull_request: true}\n'
    return WorldOptions(required=(), ci=ci + "checks: [{name: canary-check, seconds: 1}]\n")


async def recorded(world: World, folder: Path) -> tuple[str, set[str]]:
    """The text of a recording while people act, and the tokens that were used meanwhile."""
    settings = settings_for(folder, world.sandbox, WorldOptions())
    client = wiring.live_client(settings, RepoRef(asking.HOST, *REPO.split("/")), world.clock)
    path, tokens = folder / "recording.jsonl", set()
    kept = recording.Recorder.keep

    async with recording.recorded(client, path) as recorder:

        def watch(exchange: Exchange, answer: Answer) -> None:
            tokens.add(exchange.bearer)
            kept(recorder, exchange, answer)

        client.github.observe(watch)
        number = await world.open(
            files={"canary-folder/canary-file.txt": "canary text\n"},
            title="A canary title",
            body="Dear canary@example.com, see https://canary.example/canary",
            branch="canary/branch",
        )
        await world.comment("A canary comment", number)
        await world.act("label", number=number, label="canary-label")
        await world.act("approve", by="alice", number=number, body="canary review")
        async for _ in live.confirm(client, "main", "probe"):
            pass
    await client.github.close()
    return path.read_text("utf-8"), tokens


@pytest.mark.fault(
    "a recording of a repository is sent to others",
    holds="it has no token, login, address, title, text, file, branch or repository name",
    within="-",
)
async def test_a_recording_of_the_live_checks_has_no_name_and_is_read_by_the_replay(
    world: World, tmp_path: Path
) -> None:
    text, tokens = await recorded(world, tmp_path)
    names = {"octo", "widgets", "alice", "bob", CANARY, "newer.txt", "example.com", "Move on"}
    names |= {world.sandbox.app.slug + "[bot]", world.sandbox.webhook_secret, asking.HOST}
    names |= {world.start, world.older, str(world.sandbox.url), live.MESSAGE}
    assert [name for name in names | tokens if name.lower() in text.lower()] == []
    assert set(re.findall(r"[\w.]+@[\w.]+", re.sub(r"w\d+@example\.org", "", text))) == set()

    read = recordings.parse(text.splitlines())
    own = OwnApp(read.app_id, read.slug)
    signals = [signal for one in read.deliveries for signal in translated(one, own)]
    assert {type(one) for one in signals} >= {BranchMoved, PullRequestChanged}
    kinds = {one.kind for one in read.calls}
    assert {"POST /git/refs 201", "POST /pulls 201", "POST /graphql 200"} <= kinds
    for call in read.calls:
        if call.kind == "GET /pulls/N 200":
            assert listed_pull_of(Fields(call.answer)).number == call.answer["number"]


async def test_what_was_recorded_is_written_also_after_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    async with on_table() as (table, client):
        table.says("GET /api/v3/app", {"slug": "canary-app"})
        with pytest.raises(Gone):
            async with recording.recorded(client, path) as recorder:
                await client.get("/branches/canary")
    read = recordings.parse(path.read_text("utf-8").splitlines())
    assert "GET /branches/BRANCH 404" in {one.kind for one in read.calls}
    assert recorder.summary().endswith("0 deliveries (not read: Not Found)")
    assert CANARY not in path.read_text("utf-8")


def translated(sent: recordings.Sent, own: OwnApp) -> tuple[object, ...]:
    body, action = json.dumps(sent.payload).encode(), sent.payload.get("action")
    return signals_of(Delivery("github.com", "1", sent.event, action, "1", body, START), own)


def texts(value: Any) -> Iterator[str]:
    """Every text in a message."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


def is_personal(text: str) -> bool:
    """Whether a text may say anything of a repository or a person."""
    is_shape = anonymizing.TIME.fullmatch(text) or re.fullmatch(r"\d*|0{40}", text)
    return not is_shape and text not in OF_GITHUB and len(text) > len("main")


def test_published_events_keep_only_words_of_github():
    """Every text of every event that GitHub publishes is a word of GitHub, or is replaced."""
    needs.needs("assets")
    path = needs.asset("@octokit/webhooks-examples", "api.github.com/index.json")
    kept: set[str] = set()
    for event in json.loads(path.read_text("utf-8")):
        for example in event["examples"]:
            hidden = Anonymizer().message(example)
            kept |= set(texts(hidden)) & {one for one in texts(example) if is_personal(one)}
    expect("\n".join(sorted(kept))).matches("words-of-github.txt")


@pytest.mark.parametrize("entry", corpus.entries(), ids=lambda entry: entry.id)
def test_a_refusal_means_the_same_without_its_names(entry: corpus.Entry):
    hidden = Anonymizer().sentence(entry.text)
    assert limits.refusal_of(hidden) is limits.refusal_of(entry.text)


def test_a_sentence_keeps_only_words_that_github_says():
    said = "alice, Bob and Cc may not merge Canary in `canary/x` of alice (3 of 4)."
    hidden = Anonymizer().sentence(said)
    assert hidden == "w1, w2 and w3 may not merge w4 in `w4/w5` of w1 (3 of 4)."


SAYINGS = (
    "API rate limit exceeded for installation ID 4711.",
    "API rate limit exceeded for user ID 4711. See https://docs.github.com/rest",
    "Integration 4711 may not: Installation #4711 is not for app_id: 4711",
    "https://docs.github.com/ says Canary of canary",
    "Label \U0001f984 does not exist",
    "\u201cCanary\u201d \u2014 no such label",
)


@pytest.mark.parametrize("said", SAYINGS)
def test_a_sentence_names_nobody_by_a_number_a_sign_or_after_an_address(said: str):
    hidden = Anonymizer().sentence(said)
    found = [one for one in (CANARY, "4711", "\U0001f984") if one in hidden.casefold()]
    assert found == []


@pytest.mark.parametrize(
    "message",
    [
        {"repository_ids": [4711], "conditions": {"teamIds": ["4711"]}, "ids": [4711]},
        {"title": "https://[canary", "body": "http://canary]canary", "url": "ftp://[::canary"},
        {"deployment": {"payload": {"canary": 1}}, "inputs": [{"canary": "x"}]},
        {"url": "https://api.canary/app/hook/deliveries?cursor=v1_4711&state=Canary"},
        {"body": "Fix\n\nCo-authored-by: Canary <canary@canary.example>"},
        {"avatar_url": "https://avatars.canary/u/4711?v=4", "ssh_url": "git@canary:canary/x.git"},
    ],
)
def test_no_form_of_a_message_tells_a_name_or_an_id(message: dict[str, Any]):
    hidden = json.dumps(Anonymizer().message(message)).casefold()
    assert [one for one in (CANARY, "4711") if one in hidden] == []


def test_an_address_that_is_none_and_a_cursor_are_hidden_in_a_call():
    path = Anonymizer().path("https://api.canary/app/hook/deliveries?cursor=v1_4711&state=Canary")
    assert path == "/app/hook/deliveries?cursor=w1&state=w2"
    assert Anonymizer().path("/repos/octo/x/pulls?state=closed&per_page=100&page=2") == (
        "/repos/w1/w2/pulls?state=closed&per_page=100&page=2"
    )


def test_equal_values_stay_equal_and_others_different():
    anonymizer = Anonymizer()
    message = {
        "full_name": "Octo/widgets",
        "owner": {"login": "octo", "id": 7},
        "head": {"label": "octo:main", "sha": "a" * 40, "repo_id": 7},
        "base": {"sha": "b" * 40, "ref": "refs/heads/x/widgets"},
        "count": 7,
    }
    assert anonymizer.message(message) == {
        "full_name": "w1/w2",
        "owner": {"login": "w1", "id": 1},
        "head": {"label": "w1:main", "sha": f"{1:040x}", "repo_id": 1},
        "base": {"sha": f"{2:040x}", "ref": "refs/heads/w3/w2"},
        "count": 7,
    }
    assert anonymizer.path("https://ci.octo/api/v3/repos/Octo/widgets/pulls/7?head=octo:x") == (
        "/repos/w1/w2/pulls/7?head=w1%3Aw3"
    )
