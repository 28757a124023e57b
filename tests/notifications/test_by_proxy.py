"""Outgoing webhooks through a proxy: it is asked for the address that was vetted, never a name."""

import ipaddress
from urllib.parse import urlsplit

import pytest

from bot.uploader.proxies import Proxies
from service.notifications.addresses import Rules
from service.notifications.sender import HttpSender
from service.runtime import Outgoing
from tests.harness.proxy import authority, proxying, tls_before
from tests.harness.receiver import receiving

NAME, PUBLIC, PORT = "hooks.example.org", "1.1.1.1", 443
URL = f"https://{NAME}/hook?x=%41"


def outgoing(url=URL):
    return Outgoing(url, {"Content-Type": "application/json"}, b"{}")


def leading(*addresses):
    async def resolve(host, port):
        return [ipaddress.ip_address(each) for each in addresses]

    return resolve


@pytest.fixture
async def receiver(tmp_path, monkeypatch):
    """A receiver by TLS of a private authority that this machine trusts."""
    corporate = authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(corporate.file))
    async with (
        receiving() as made,
        tls_before(urlsplit(made.url).port or 0, corporate.server(NAME)) as port,
    ):
        made.url = f"https://{NAME}:{port}/hook"
        yield made, port


async def test_the_proxy_connects_to_the_vetted_address_and_tls_is_verified_for_the_name(receiver):
    made, port = receiver
    async with proxying({f"{PUBLIC}:{PORT}": port}) as proxy:
        sender = HttpSender(Rules(), leading(PUBLIC), proxy_of=Proxies(https=proxy.url).of)
        outcome = await sender.post(outgoing())
    assert (outcome.status, outcome.error) == (200, None)
    assert proxy.targets == [f"{PUBLIC}:{PORT}"]
    assert made.got[0].headers["host"] == NAME


async def test_a_receiver_of_another_name_is_not_sent_anything(receiver):
    made, port = receiver
    async with proxying({f"{PUBLIC}:{PORT}": port}) as proxy:
        sender = HttpSender(Rules(), leading(PUBLIC), proxy_of=Proxies(https=proxy.url).of)
        outcome = await sender.post(outgoing("https://other.example.org/"))
    assert (outcome.error or "").startswith("TLS failed: ")
    assert made.got == []


@pytest.mark.parametrize("address", ["10.1.2.3", "169.254.169.254", "127.0.0.1", "::1"])
async def test_a_private_address_is_refused_before_the_proxy_is_asked(address):
    async with proxying({}) as proxy:
        sender = HttpSender(Rules(), leading(address), proxy_of=Proxies(https=proxy.url).of)
        outcome = await sender.post(outgoing())
        with pytest.raises(ValueError, match="no public address"):
            await sender.fetched(URL)
    assert "which is no public address" in (outcome.error or "")
    assert proxy.lines == []


async def test_a_host_of_no_proxy_is_requested_directly_at_its_vetted_address(receiver):
    made, port = receiver
    rules = Rules(frozenset({port}), (ipaddress.ip_network("127.0.0.0/8"),))
    for exception in (NAME, "127.0.0.0/8"):
        known = Proxies(https="http://127.0.0.1:1", no=exception)
        sender = HttpSender(rules, leading("127.0.0.1"), proxy_of=known.of)
        assert (await sender.post(outgoing(made.url))).error is None


async def test_this_machine_is_requested_directly_because_it_is_another_one_for_the_proxy():
    async with proxying({}) as proxy, receiving() as made:
        rules = Rules(
            frozenset({urlsplit(made.url).port or 0}), (ipaddress.ip_network("127.0.0.0/8"),)
        )
        sender = HttpSender(rules, proxy_of=Proxies(http=proxy.url).of)
        assert (await sender.post(outgoing(made.url))).error is None
    assert proxy.lines == []


async def test_the_next_vetted_address_is_tried_where_the_proxy_cannot_reach_one(receiver):
    _, port = receiver
    async with proxying({f"{PUBLIC}:{PORT}": port}) as proxy:
        known = Proxies(https=proxy.url)
        sender = HttpSender(Rules(), leading("2606:4700::1", PUBLIC), proxy_of=known.of)
        outcome = await sender.post(outgoing())
    assert outcome.error is None
    assert proxy.targets == [f"[2606:4700::1]:{PORT}", f"{PUBLIC}:{PORT}"]


@pytest.mark.parametrize("status", [403, 407, 502])
async def test_a_refusal_of_the_proxy_says_that_it_is_the_proxys(status):
    async with proxying({f"{PUBLIC}:{PORT}": 1}, answer=status) as proxy:
        sender = HttpSender(Rules(), leading(PUBLIC), proxy_of=Proxies(https=proxy.url).of)
        outcome = await sender.post(outgoing())
    assert (outcome.status, outcome.error) == (None, f"The outbound proxy answered {status}.")


async def test_a_proxy_that_is_not_there_is_named_as_the_proxy():
    sender = HttpSender(Rules(), leading(PUBLIC), proxy_of=Proxies(https="http://127.0.0.1:1").of)
    outcome = await sender.post(outgoing())
    assert outcome.error == "The outbound proxy cannot be reached: connection refused."


async def test_keys_of_an_issuer_come_the_same_way(receiver):
    _, port = receiver
    async with proxying({f"{PUBLIC}:{PORT}": port}) as proxy:
        sender = HttpSender(Rules(), leading(PUBLIC), proxy_of=Proxies(https=proxy.url).of)
        status, _ = await sender.fetched(URL)
    assert (status, proxy.targets) == (200, [f"{PUBLIC}:{PORT}"])
