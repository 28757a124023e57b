"""Which address a request comes from (docs/design/limits.md 1)."""

from ipaddress import ip_network

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from service.http import addresses, connections
from service.http.connections import ConnectionCounts

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def seen(peer: str, *forwarded: str, trusted=PROXIES) -> str:
    """The address of a request from `peer` with these headers."""
    headers = CIMultiDict(("X-Forwarded-For", line) for line in forwarded)
    request = make_mocked_request("GET", "/", headers=headers).clone(remote=peer)
    return addresses.address_of(request, trusted)


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["1.2.3.4, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7, 10.0.0.2,10.0.0.3"], "198.51.100.7"),
        ("10.0.0.1", ["1.2.3.4", "198.51.100.7, 10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.7, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["nonsense, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["::ffff:198.51.100.7"], "198.51.100.7"),
        ("fd00::1%eth0", ["2001:db8:0:7::7"], "2001:db8:0:7::/64"),
        ("2001:db8::1", [], "2001:db8::/64"),
        ("2001:db8::ffff:ffff:ffff:2", [], "2001:db8::/64"),
        ("", ["198.51.100.7"], ""),
    ],
)
def test_the_first_address_from_the_right_that_is_no_proxys_is_the_clients(peer, forwarded, client):
    assert seen(peer, *forwarded) == client


def test_without_trusted_proxies_the_header_means_nothing():
    assert seen("10.0.0.1", "198.51.100.7", trusted=()) == "10.0.0.1"


def test_a_long_row_of_proxies_is_cut():
    row = ", ".join(["198.51.100.7"] + ["10.0.0.2"] * 40)
    assert seen("10.0.0.1", row) == "10.0.0.2"


def test_a_trusted_proxy_holds_the_connections_of_many(monkeypatch):
    monkeypatch.setattr(connections, "CONNECTIONS_AN_ADDRESS", 1)
    crowd = ConnectionCounts(PROXIES)
    assert [crowd.enter("10.0.0.1") for _ in range(3)] == [True] * 3
    assert [crowd.enter("192.0.2.1") for _ in range(2)] == [True, False]
    crowd.leave("192.0.2.1")
    crowd.leave("192.0.2.1")
    assert crowd.enter("192.0.2.1")
