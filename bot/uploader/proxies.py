"""The proxies of the environment, by one rule for the service, git and the command line.

`HTTP_PROXY` and `HTTPS_PROXY` name the proxy for addresses of that scheme, `NO_PROXY` the hosts
that are requested directly. Of two letter cases the lower one is read.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

PORTS = {"http": 80, "https": 443}


class WrongProxy(ValueError):
    """The variable of a proxy is not an address; the text never has its value, a password."""


class Proxies(NamedTuple):
    """The texts of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`; empty if they are not set."""

    http: str = ""
    https: str = ""
    no: str = ""

    def of(self, url: str, addresses: Iterable[str] = ()) -> str | None:
        """Return the proxy for a URL, None for a direct request.

        `addresses` are those of its host, if they are known: a network of `NO_PROXY` covers them.
        Raises WrongProxy.
        """
        parts = urlsplit(url)
        name, text = ("HTTPS", self.https) if parts.scheme == "https" else ("HTTP", self.http)
        if not text or self._is_exception(parts, addresses):
            return None
        return _address_in(name, text)

    def check(self) -> None:
        """Raise WrongProxy if one of them is no address."""
        for name, text in (("HTTP", self.http), ("HTTPS", self.https)):
            if text:
                _address_in(name, text)

    def _is_exception(self, parts: SplitResult, addresses: Iterable[str]) -> bool:
        host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        found = [each for text in (host, *addresses) for each in _addresses(text)]
        return any(
            _names(entry.strip().lower(), host, port)
            or any(address in network for network in _networks(entry) for address in found)
            for entry in self.no.split(",")
        )


def in_environment(environment: Mapping[str, str]) -> Proxies:
    """Return the proxies that these variables name."""
    names = ("http_proxy", "https_proxy", "no_proxy")
    return Proxies(*(_variable(environment, name) for name in names))


def _address_in(name: str, text: str) -> str:
    proxy = text if "://" in text else f"http://{text}"
    if not is_http(proxy):
        raise WrongProxy(f"{name}_PROXY is not an http address")
    return proxy


def is_http(address: str) -> bool:
    """Return whether an address is one of http or https that can be requested."""
    try:
        parts = urlsplit(address)
        # Asking for the port raises for one that cannot exist; the library would wrap it round.
        return parts.scheme in PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, environment.get(name.upper(), "")).strip()


def _names(entry: str, host: str, port: int) -> bool:
    """Return whether an entry of `NO_PROXY` names the host, one above it, or every host."""
    if entry == "*":
        return True
    name, _, only = entry.rpartition(":")
    if only != str(port) or (":" in name and not name.startswith("[")):
        name = entry
    name = name.removeprefix("*").lstrip(".").strip("[]")
    return bool(name) and f".{host}".endswith(f".{name}")


def _networks(text: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Return the network that an entry of `NO_PROXY` is; empty for a name."""
    try:
        return [ipaddress.ip_network(text.strip(" []"), strict=False)]
    except ValueError:
        return []


def _addresses(text: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        return [ipaddress.ip_address(text)]
    except ValueError:
        return []
