"""Parsers of settings that are more than a word or a number.

Each takes the environment's text and raises ValueError naming the wanted form. A value that is
parsed already is returned as it is.
"""

import ipaddress
import re

from service.limits import Rate
from service.vocabulary import Network

PORT_MAX = 65_535

_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_MAIL = re.compile(r"[!-9;-?A-~]+@[A-Za-z0-9.-]+")
_CONTACT = re.compile(r"(?:mailto:|https://|tel:)[!-~]{1,500}")
_ACCOUNT = re.compile(r"[0-9]{1,19}|(?![0-9]+$)[a-z0-9][a-z0-9_-]{0,99}")
_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)/([0-9]{1,7})")


def parse_rate(value: object) -> object:
    """Parse `RATE/BURST`: requests per second and burst size; `0` is None, no limit."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text == "0":
        return None
    match = _RATE.fullmatch(text)
    if match is None or not float(match[1]) or not int(match[2]):
        raise ValueError("must be RATE/BURST, as 50/500, or 0 for no limit")
    return Rate(float(match[1]), int(match[2]))


def parse_networks(value: object) -> object:
    """Parse networks separated by commas; a single address is a network of its own."""
    if not isinstance(value, str):
        return value
    return tuple(_network(text.strip()) for text in value.split(",") if text.strip())


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(
            f"{text[:50]} is no network; give networks as 10.0.0.0/8, separated by commas"
        ) from None


def parse_listen(value: str) -> str:
    """Check `HOST:PORT`, with an IPv6 host in brackets, or `off`."""
    host, _, port = value.rpartition(":")
    is_whole = host and (":" not in host or (host[0] == "[" and host[-1] == "]"))
    if value != "off" and not (is_whole and port.isdecimal() and int(port) <= PORT_MAX):
        raise ValueError("must be HOST:PORT, as 127.0.0.1:9642, or off")
    return value


def parse_ports(value: object) -> object:
    """Parse ports separated by commas, `FIRST-LAST` for a range."""
    if not isinstance(value, str):
        return value
    parts = (text.strip() for text in value.split(","))
    return frozenset(port for text in parts if text for port in _ports(text))


def _ports(text: str) -> range:
    match = _PORTS.fullmatch(text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last <= PORT_MAX:
        raise ValueError(
            f"{text[:50]} is no port; give ports as 8443,9000-9010, separated by commas"
        )
    return range(first, last + 1)


def parse_accounts(value: object) -> object:
    """Parse ids and logins of accounts, separated by commas; logins become lower case.

    Digits alone are an id.
    """
    if not isinstance(value, str):
        return value
    named = [text.strip().removeprefix("@").lower() for text in value.split(",") if text.strip()]
    wrong = [text for text in named if not _ACCOUNT.fullmatch(text)]
    if wrong:
        raise ValueError(
            f"{wrong[0][:50]} is no account; give logins or the numbers of accounts, as "
            "alice,583231. The number of an account is in https://api.github.com/users/LOGIN"
        )
    return frozenset(named)


def parse_contact(value: str) -> str:
    """Return an address for reports of weaknesses; a bare mail address becomes a `mailto:`."""
    if _MAIL.fullmatch(value):
        return f"mailto:{value}"
    if not _CONTACT.fullmatch(value):
        raise ValueError(
            "must be a mail address, or begin with mailto:, https:// or tel:, without spaces"
        )
    return value


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
