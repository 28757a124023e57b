"""Find the address that a request comes from, also behind proxies (docs/design/limits.md 1)."""

import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from aiohttp import HttpVersion11, web
from multidict import istr

from service.vocabulary import Network

# More proxies in a row than anybody has; what stands further left is the client's own word.
HOPS_MAX = 16

_FORWARDED = istr("X-Forwarded-For")

FORWARDED = "x-forwarded-"
OF_PROXIES = frozenset(
    {
        "cf-connecting-ip",
        "fastly-client-ip",
        "fly-client-ip",
        "forwarded",
        "true-client-ip",
        "via",
        "x-azure-clientip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-envoy-external-address",
        "x-original-forwarded-for",
        "x-original-host",
        "x-real-ip",
    }
)
"""Headers that proxies and balancers add, beside those that begin with `FORWARDED`."""


# What one subscriber of IPv6 is given: whoever counts single addresses counts nobody.
SUBSCRIBER_BITS = 64


def address_of(request: web.BaseRequest, trusted: Sequence[Network]) -> str:
    """Return what a client is counted by: its address, of IPv6 the network of 64 bits around it.

    Empty where there is none (a Unix socket).
    """
    client = _client_of(request, trusted)
    address = parsed(client)
    if not isinstance(address, IPv6Address):
        return client
    return str(IPv6Network((address, SUBSCRIBER_BITS), strict=False))


def _client_of(request: web.BaseRequest, trusted: Sequence[Network]) -> str:
    """The client's own address.

    `X-Forwarded-For` is read from the right, as far as a trusted proxy wrote it: the first
    address that is no proxy's is the client. From anybody else the header means nothing.
    """
    peer = request.remote or ""
    if not trusted or not is_among(peer, trusted):
        return peer
    found = peer
    hops = ",".join(request.headers.getall(_FORWARDED, ())).split(",")
    for hop in reversed(hops[-HOPS_MAX:]):
        address = parsed(hop.strip())
        if address is None:
            break
        found = str(address)
        if not is_among(found, trusted):
            break
    return found


def is_passed_on(request: web.BaseRequest) -> bool:
    """Return whether a proxy has passed the request on, so that its sender may be anywhere.

    Proxies add one of these headers. One that adds none may still speak HTTP/1.0, which no
    browser does.
    """
    names = (name.lower() for name in request.headers)
    is_marked = any(name in OF_PROXIES or name.startswith(FORWARDED) for name in names)
    return is_marked or request.version < HttpVersion11


def is_among(address: str, networks: Sequence[Network]) -> bool:
    """Return whether an address lies in one of these networks."""
    found = parsed(address)
    return found is not None and any(found in network for network in networks)


def parsed(text: str) -> IPv4Address | IPv6Address | None:
    """An address without its zone; one of IPv4 in an IPv6 coat as itself; None: no address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
