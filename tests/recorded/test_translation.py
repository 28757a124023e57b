"""Every recorded delivery is translated: nothing raises, and each kind gives its signals."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from bot.github.translate import OwnApp, signals_of
from service.provider.signals import Asked, CheckReported, Delivery
from service.vocabulary import ActorKind
from tests.harness.expect import expect
from tests.provider.stage import HOST, START
from tests.recorded import recordings
from tests.recorded.recordings import Sent

RECORDED = recordings.of_2022()
OURS = OwnApp(RECORDED.app_id, RECORDED.slug)
ANOTHERS = OwnApp("4711", "headgate")
EACH_VIEW = pytest.mark.parametrize(
    ("view", "own"), [("ours", OURS), ("anothers", ANOTHERS)], ids=["ours", "anothers"]
)


def translated(sent: Sent, own: OwnApp):
    body = json.dumps(sent.payload).encode()
    action = sent.payload.get("action")
    return signals_of(Delivery(HOST, "1", sent.event, action, "1", body, START), own)


def shown(signal) -> str:
    name = type(signal).__name__
    return f"{name}({signal.news.name})" if isinstance(signal, CheckReported) else name


@pytest.mark.fault(
    "a delivery as GitHub really sent it",
    holds="it is translated without an error, and gives the signals of its kind",
    within="-",
)
@EACH_VIEW
def test_each_recorded_delivery_gives_the_signals_of_its_kind(view: str, own: OwnApp):
    counts = Counter(
        (sent.kind, " ".join(map(shown, translated(sent, own))) or "-")
        for sent in RECORDED.deliveries
    )
    lines = [f"{count:4} {kind}: {signals}" for (kind, signals), count in sorted(counts.items())]
    expect("\n".join(lines)).matches(f"signals-{view}.txt")


def test_what_our_own_app_reported_or_said_is_no_signal():
    of_checks = [one for one in RECORDED.deliveries if one.event in ("check_run", "check_suite")]
    own = [one for one in of_checks if str(one.payload[one.event]["app"]["id"]) == OURS.id]
    assert len(own) > 1000
    assert [one.kind for one in own if translated(one, OURS) != ()] == []
    assert all(translated(one, ANOTHERS) for one in own if one.kind != "check_suite.requested")


def test_senders_of_pushes_are_known_by_their_accounts():
    pushes = [one for one in RECORDED.deliveries if one.event == "push"]
    kinds = Counter(signal.actor.kind for one in pushes for signal in translated(one, OURS))
    assert kinds.keys() == {ActorKind.PERSON, ActorKind.BOT, ActorKind.SELF}


def test_a_command_in_a_recorded_comment_is_a_persons_and_never_our_own():
    comments = [one for one in RECORDED.deliveries if one.kind == "issue_comment.created"]
    for sent in comments:
        payload = {**sent.payload, "comment": {**sent.payload["comment"], "body": "/merge"}}
        asked = translated(replace(sent, payload=payload), OURS)
        is_own = sent.payload["comment"]["user"]["login"] == OURS.login
        assert [type(one) for one in asked] == ([] if is_own else [Asked])
