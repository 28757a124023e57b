"""What the composition root decides by itself."""

from datetime import timedelta

import pytest

from bot import settings, wiring
from bot.settings import FaultBoundary, Strike
from service.crash_points import NoCrashes
from service.errors import InvariantBroken, StartRefused

NAME = "act.land.after_send"


def test_a_planned_crash_strikes_at_the_nth_pass_and_only_there():
    striking = wiring.Striking(FaultBoundary(NAME, 2, Strike.RAISE))
    striking.reach(NAME)
    striking.reach("tx.turn.before_commit")
    with pytest.raises(InvariantBroken, match=NAME):
        striking.reach(NAME)
    striking.reach(NAME)


def test_without_a_plan_nothing_ever_strikes():
    assert isinstance(wiring.world_of(settings.alone()).crash_points, NoCrashes)
    planned = settings.alone(fault_boundary=f"{NAME}:1:raise")
    assert isinstance(wiring.world_of(planned).crash_points, wiring.Striking)


def test_the_service_uses_the_proxies_of_its_environment_and_a_demo_none(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.corp.example:3128")
    monkeypatch.setenv("no_proxy", "localhost")
    found = wiring.world_of(settings.alone()).proxies
    assert found.of("https://api.github.com/app") == "http://proxy.corp.example:3128"
    assert wiring.World().proxies.of("https://api.github.com/app") is None


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("https_proxy", "socks5://bob:s3cret@x", "HTTPS_PROXY is not an http address. Name the"),
        ("SSL_CERT_FILE", "/none/ca.pem", "SSL_CERT_FILE: /none/ca.pem cannot be read (No such"),
        ("SSL_CERT_FILE", "/dev/null", "SSL_CERT_FILE: /dev/null cannot be read (it has no cert"),
    ],
)
def test_a_network_that_cannot_be_used_refuses_the_start(monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    with pytest.raises(StartRefused) as refused:
        wiring.world_of(settings.alone())
    assert str(refused.value).startswith(words)
    assert "s3cret" not in str(refused.value)


def test_every_period_is_a_setting():
    names = ("timers", "readback", "run_checks", "queues", "idle", "redelivery", "orphans")
    chosen = {f"period_{name}_s": number for number, name in enumerate(names, 1)}
    periods = wiring.periods_of(settings.alone(**chosen))
    found = [getattr(periods, name) for name in names]
    assert found == [timedelta(seconds=number) for number in range(1, 8)]


def test_a_previous_secret_key_is_known_but_not_used():
    old, new = "o" * 43, "n" * 43
    before = wiring.key_ring(settings.alone(secret_key=old))
    now = wiring.key_ring(settings.alone(secret_key=new, secret_key_previous=old))
    assert before.token_digest("t") == now.token_digests("t")[1] != now.token_digest("t")
