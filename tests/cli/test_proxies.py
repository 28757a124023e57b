"""The rule of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, for all that calls out."""

import pytest

from bot.uploader import proxies
from bot.uploader.proxies import Proxies, WrongProxy

PROXY = "http://proxy.corp.example:3128"


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_a_proxy_is_read_in_either_letter_case_and_is_for_its_scheme_alone(name):
    found = proxies.in_environment({name: PROXY})
    assert found.of("https://api.github.com/app") == PROXY
    assert found.of("http://127.0.0.1:8642/") is None


def test_the_lower_case_wins_and_an_empty_one_says_that_there_is_no_proxy():
    assert proxies.in_environment({"HTTPS_PROXY": "http://x", "https_proxy": PROXY}).https == PROXY
    assert proxies.in_environment({"HTTPS_PROXY": PROXY, "https_proxy": ""}).https == ""


def test_a_proxy_without_a_scheme_is_an_http_address():
    assert (
        proxies.in_environment({"http_proxy": "proxy:3128"}).of("http://x") == "http://proxy:3128"
    )


@pytest.mark.parametrize(
    "value", ["socks5://bob:secret@proxy:1", "http://[", "http://bob:secret@proxy:99999", "http://"]
)
def test_what_is_no_proxy_is_refused_and_its_password_is_not_shown(value):
    found = proxies.in_environment({"https_proxy": value})
    assert found.of("http://queue.example") is None
    for use in (found.check, lambda: found.of("https://queue.example")):
        with pytest.raises(WrongProxy) as refused:
            use()
        assert str(refused.value) == "HTTPS_PROXY is not an http address"


@pytest.mark.parametrize(
    ("exceptions", "url", "is_direct"),
    [
        ("", "https://ghes.corp.example/", False),
        ("*", "https://ghes.corp.example/", True),
        ("corp.example", "https://ghes.corp.example/", True),
        (".corp.example", "https://ghes.corp.example/", True),
        ("*.corp.example", "https://ghes.corp.example/", True),
        ("*.corp.example", "https://notcorp.example/", False),
        ("other.example, ghes.corp.example", "https://GHES.corp.example:8443/", True),
        ("ghes.corp.example:8443", "https://ghes.corp.example:8443/", True),
        ("ghes.corp.example:8443", "https://ghes.corp.example/", False),
        ("corp.example", "https://notcorp.example/", False),
        ("10.0.0.0/8", "https://10.1.2.3/", True),
        ("10.0.0.0/8", "https://11.1.2.3/", False),
        ("127.0.0.1", "https://127.0.0.1:8443/", True),
        ("::1", "https://[::1]:8443/", True),
        ("[::1]:8443", "https://[::1]:8443/", True),
        ("[::1]:8443", "https://[::1]/", False),
        ("fd00::/8", "https://[fd12::1]/", True),
        ("10.0.0.0/8", "https://ghes.corp.example/", False),
        ("corp.example", "https://bob:x@ghes.corp.example/", True),
    ],
)
def test_hosts_of_no_proxy_are_requested_directly(exceptions, url, is_direct):
    found = Proxies(https=PROXY, no=exceptions).of(url)
    assert found == (None if is_direct else PROXY)


def test_a_network_of_no_proxy_covers_a_host_whose_address_is_known():
    known = Proxies(https=PROXY, no="10.0.0.0/8")
    assert known.of("https://hooks.corp.example/", ["10.1.2.3"]) is None
    assert known.of("https://hooks.example.org/", ["198.51.100.7"]) == PROXY
