"""Signatures, the schedule, and which events an endpoint wants (docs/design/notifications.md 1)."""

from datetime import UTC, datetime, timedelta

import pytest
import standardwebhooks
import svix

from service.notifications import messages, schedule, signing

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
BODY = '{"type":"webhook.test"}'
AT = datetime.fromtimestamp(1763640000, UTC)
SIGNATURE = "v1,AKDrP4oBAIR1BuxBAgQbw5Ko5kN+PE5U+drt4Xx4O1M="


def test_the_vector_of_the_contract():
    assert signing.headers("msg_2kq0example", AT, BODY, [SECRET]) == {
        "webhook-id": "msg_2kq0example",
        "webhook-timestamp": "1763640000",
        "webhook-signature": SIGNATURE,
        "svix-id": "msg_2kq0example",
        "svix-timestamp": "1763640000",
        "svix-signature": SIGNATURE,
    }


def test_milliseconds_of_an_attempt_do_not_reach_its_signature():
    late = AT + timedelta(milliseconds=999)
    assert signing.headers("msg_2kq0example", late, BODY, [SECRET])["svix-signature"] == SIGNATURE


def test_while_two_secrets_sign_either_verifies_by_either_library():
    now = datetime.now(UTC)
    old, new = signing.new_secret(), signing.new_secret()
    sent = dict(signing.headers("msg_1", now, BODY, [new, old]))
    assert sent["webhook-signature"].count("v1,") == 2
    for secret in (old, new):
        standardwebhooks.Webhook(secret).verify(BODY, sent)
        svix.Webhook(secret).verify(BODY, sent)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(signing.new_secret()).verify(BODY, sent)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(new).verify(BODY + " ", sent)


def test_a_secret_is_32_random_bytes_and_an_id_32_hex_digits():
    first, second = signing.new_secret(), signing.new_secret()
    assert first != second
    assert first.startswith("whsec_")
    assert len(first) == len(SECRET)
    found = signing.message_id("6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10")
    assert found == "msg_6d1f7a528a0c4c1a9a553f3b1d6f2c10"


def test_ten_attempts_over_three_days_each_spread_by_a_tenth():
    first, last = timedelta(seconds=5), timedelta(hours=24)
    assert (schedule.RETRIES[0], schedule.RETRIES[-1]) == (first, last)
    for tries, pause in enumerate(schedule.RETRIES, start=1):
        found = [schedule.next_try(tries, f"msg_{i}", AT, None) for i in range(300)]
        waits = [at - AT for at in found if at is not None]
        assert len(waits) == 300
        assert 0.9 * pause <= min(waits) < 0.92 * pause
        assert 1.08 * pause < max(waits) <= 1.1 * pause
    assert schedule.next_try(10, "msg_1", AT, None) is None
    assert timedelta(days=3) < sum(schedule.RETRIES, timedelta()) < timedelta(days=4)


@pytest.mark.parametrize(
    ("status", "header", "wish"),
    [
        (429, "120", timedelta(minutes=2)),
        (503, " 7 ", timedelta(seconds=7)),
        (429, "999999999999", timedelta(hours=24)),
        (429, "Thu, 20 Nov 2025 12:10:00 GMT", timedelta(minutes=10)),
        (429, "Thu, 20 Nov 2025 11:00:00 GMT", timedelta()),
        (429, "soon", None),
        (429, "Thu, 99999999999999999999 Jan 2026 11:00:00 GMT", None),
        (429, "-5", None),
        (429, "1.5", None),
        (429, "٣", None),
        (429, None, None),
        (500, "120", None),
        (None, "120", None),
    ],
)
def test_how_long_a_receiver_wants_to_be_left_alone(status, header, wish):
    assert schedule.retry_after_of(status, header, AT) == wish


def test_a_receiver_is_left_alone_as_it_wants_but_no_longer_than_a_day():
    day = timedelta(hours=24)
    assert schedule.next_try(1, "m", AT, timedelta(hours=1)) == AT + timedelta(hours=1)
    assert schedule.next_try(1, "m", AT, timedelta(days=9)) == AT + day
    patient = schedule.next_try(4, "m", AT, timedelta(seconds=1))
    assert patient is not None
    assert patient > AT + timedelta(hours=1)


@pytest.mark.parametrize(
    ("status", "days", "messages", "is_disabled"),
    [
        (410, 0, 1, True),
        (500, 5, 10, True),
        (None, 6, 50, True),
        (500, 4.9, 50, False),
        (500, 6, 9, False),
        (404, 0, 1, False),
    ],
)
def test_when_an_endpoint_is_given_up(status, days, messages, is_disabled):
    since = AT - timedelta(days=days)
    assert (schedule.disabled_reason(status, since, messages, AT) is not None) is is_disabled


def test_an_endpoint_wants_events_by_name_by_group_or_all():
    assert messages.wants(["*"], "queue.held")
    assert messages.wants(["queue.*"], "queue.held")
    assert messages.wants(["upload.processed", "queue.held"], "queue.held")
    assert not messages.wants(["pull_request.*"], "queue.held")
    assert not messages.wants(["pull_request.*"], "pull_request_batch.failed")
    assert not messages.wants(["queue.created"], "queue.held")
    groups = {pattern for pattern in messages.PATTERNS if pattern.endswith(".*")}
    assert groups == {
        f"{group}.*"
        for group in (
            "pull_request",
            "pull_request_batch",
            "next_step",
            "test_run",
            "test_case",
            "upload",
            "queue",
            "target",
            "conflict",
            "flake_costs",
            "test_machine",
            "webhook",
        )
    }
    assert len(messages.EVENTS) == len(set(messages.EVENTS))
