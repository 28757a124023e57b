"""Judge which user addresses may be called, by texts and numbers (docs/design/security.md 5).

An address that users give could point into the operator's own network. A refusal is a sentence
that says what to write instead. Nothing here resolves a name or opens a connection.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from urllib.parse import urlsplit

from service.vocabulary import Network

Address = IPv4Address | IPv6Address

HTTPS_PORT = 443
HTTP_PORT = 80
HOST_LENGTH_MAX = 253

REFUSED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "168.63.129.16/32",
        "::/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
"""See docs/design/security.md 5, and the documentation network of RFC 9637."""

GLOBAL_UNICAST = IPv6Network("2000::/3")
MAPPED = IPv6Network("::ffff:0:0/96")
COMPATIBLE = IPv6Network("::/96")
SIX_TO_FOUR = IPv6Network("2002::/16")
NAT64 = IPv6Network("64:ff9b::/96")
TEREDO = IPv6Network("2001::/32")

_PRINTABLE = re.compile(r"[!-~]+")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_AUTHORITY = re.compile(
    rf"(?P<host>\[[0-9A-Fa-f:.]+\]|{_LABEL}(?:\.{_LABEL})*)(?::(?P<port>[0-9]{{1,5}}))?"
)
# The URL standard reads a host whose last label is such as an IPv4 address, however written.
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)")


@dataclass(frozen=True, slots=True)
class Rules:
    """The addresses that the deployment allows beside public ones (HEADGATE_WEBHOOK_…)."""

    ports: frozenset[int] = frozenset()
    networks: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The target of an accepted address; `literal` is the host when it is an address itself."""

    host: str
    port: int
    is_plain: bool
    literal: Address | None


def target_of(url: str, rules: Rules) -> Target | str:
    """Return where the URL leads, or why it may not be called; its host is still to be resolved."""
    if not _PRINTABLE.fullmatch(url) or "\\" in url:
        return "Write it in visible ASCII characters without backslash; a host as xn--…"
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in ("https", "http"):
        return "It must begin with https://"
    if "#" in rest:
        return "Leave out the part behind `#`; it is never sent."
    authority = re.split(r"[/?]", rest, maxsplit=1)[0]
    if "@" in authority:
        return "It must hold no user name or password; messages are signed instead."
    return _target(authority, scheme.lower() == "http", rules)


def _target(authority: str, is_plain: bool, rules: Rules) -> Target | str:
    found = _AUTHORITY.fullmatch(authority)
    if found is None or len(found["host"]) > HOST_LENGTH_MAX:
        return "Behind :// there must be a host name or address, and at most a port."
    host = found["host"].lower()
    port = int(found["port"] or (HTTP_PORT if is_plain else HTTPS_PORT))
    if port != HTTPS_PORT and port not in rules.ports:
        return f"Port {port} is not open to webhooks; use 443, or ask the operator."
    literal = _literal(host)
    if isinstance(literal, str):
        return literal
    return Target(host, port, is_plain, literal)


def _literal(host: str) -> Address | str | None:
    """Return the address that the host is, None for a name, or why neither."""
    bare = host.strip("[]")
    if not host.startswith("[") and not _ENDS_IN_NUMBER.fullmatch(host):
        return None
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return f"{bare} is no address in its usual form, as 203.0.114.7 or 2a00:1450::1."
    if address.version != (6 if host.startswith("[") else 4) or address.compressed != bare:
        return f"Write the address in its usual form: {address.compressed}."
    return address


def refusal(found: Sequence[Address], target: Target, rules: Rules) -> str | None:
    """Return why none of the addresses that a host has may be called; None: all of them may.

    One bad address refuses all: which of them is connected to is chance.
    """
    if not found:
        return f"{target.host} has no address."
    for address in found:
        if target.is_plain and not _is_named_loopback(address, rules):
            return "It must begin with https://"
        if not all(_may_be_called(each, rules) for each in _unwrapped(address)):
            return f"{target.host} leads to {address}, which is no public address."
    return None


def _is_named_loopback(address: Address, rules: Rules) -> bool:
    """Return whether plain http is allowed: the operator named a network of this machine alone."""
    return any(network.is_loopback and address in network for network in rules.networks)


def _may_be_called(address: Address, rules: Rules) -> bool:
    return _is_public(address) or any(address in network for network in rules.networks)


def _is_public(address: Address) -> bool:
    """Return whether it is global unicast outside the table; embedded addresses are not checked."""
    if any(address in network for network in REFUSED):
        return False
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return False
    return address.is_global and not address.is_multicast


def _unwrapped(address: Address) -> tuple[Address, ...]:
    """Return every address that a packet to this one may really go to.

    A mapped address is its inner one and nothing else; of a tunnel both ends count.
    """
    if isinstance(address, IPv4Address):
        return (address,)
    number = int(address)
    if address in MAPPED:
        return (IPv4Address(number & 0xFFFFFFFF),)
    if address in COMPATIBLE or address in NAT64:
        return (address, IPv4Address(number & 0xFFFFFFFF))
    if address in SIX_TO_FOUR:
        return (address, IPv4Address(number >> 80 & 0xFFFFFFFF))
    if address in TEREDO:
        server, client = number >> 64 & 0xFFFFFFFF, ~number & 0xFFFFFFFF
        return (address, IPv4Address(server), IPv4Address(client))
    return (address,)


def origin_of(url: str) -> str:
    """Return scheme, host and port of an accepted URL: the rest may contain a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
