"""Which addresses may be called: many forms, each judged by text and by number."""

import ipaddress

import pytest

from service.notifications import addresses
from service.notifications.addresses import Rules, Target

NONE = Rules()
HERE = Rules(frozenset({8443, 9000}), (ipaddress.ip_network("127.0.0.0/8"),))
INSIDE = Rules(frozenset({80}), (ipaddress.ip_network("10.1.0.0/16"),))

ACCEPTED = [
    ("https://example.org/hook", "example.org", 443),
    ("https://EXAMPLE.org/Hook?a=b&c=%2F", "example.org", 443),
    ("https://example.org", "example.org", 443),
    ("https://example.org:443/", "example.org", 443),
    ("HTTPS://example.org/", "example.org", 443),
    ("https://a-b.c_d.example.org/", "a-b.c_d.example.org", 443),
    ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443),
    ("https://1.example/", "1.example", 443),
    ("https://203.0.114.7/", "203.0.114.7", 443),
    ("https://1.1.1.1/a//b/../c", "1.1.1.1", 443),
    ("https://[2a00:1450::1]/", "[2a00:1450::1]", 443),
    ("https://example.org?x", "example.org", 443),
]


@pytest.mark.parametrize(("url", "host", "port"), ACCEPTED)
def test_a_plain_address_is_accepted_as_it_is_written(url, host, port):
    target = addresses.target_of(url, NONE)
    assert isinstance(target, Target)
    assert (target.host, target.port, target.is_plain) == (host, port, False)


REFUSED_TEXTS = [
    "",
    "example.org/hook",
    "//example.org/",
    "https:/example.org",
    "https:example.org",
    "ftp://example.org/",
    "file:///etc/passwd",
    "gopher://example.org/",
    "javascript:alert(1)",
    "https://",
    "https:///hook",
    "https://:443/",
    "https://user@example.org/",
    "https://user:password@example.org/",
    "https://@example.org/",
    "https://example.org@127.0.0.1/",
    "https://127.0.0.1#@example.org/",
    "https://example.org/#part",
    "https://example.org\\@127.0.0.1/",
    "https://example.org\\.evil/",
    "https://example.org /",
    " https://example.org/",
    "https://example.org/\n",
    "https://example.org/\r\nX: y",
    "https://example.org/\tx",
    "https://example.org/\x00",
    "https://bücher.example/",
    "https://example。org/",
    "https://\uff11\uff12\uff17.0.0.1/",
    "https://①②⑦.0.0.1/",
    "https://exam%70le.org/",
    "https://%31%32%37.0.0.1/",
    "https://example.org:0/",
    "https://example.org:80/",
    "https://example.org:22/",
    "https://example.org:8443/",
    "https://example.org:65536/",
    "https://example.org:443443/",
    "https://example.org:-1/",
    "https://example.org:x/",
    "https://example.org:/",
    "https://example.org.:443x/",
    "https://example..org/",
    "https://.example.org/",
    "https://example.org./",
    "https://-example.org/",
    "https://example-.org/",
    "https://exa mple.org/",
    "https://exa'mple.org/",
    f"https://{'a' * 64}.org/",
    f"https://{'a.' * 130}org/",
    "https://2130706433/",
    "https://017700000001/",
    "https://0x7f000001/",
    "https://0X7F.1/",
    "https://0x7f.0x0.0x0.0x1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://0/",
    "https://1/",
    "https://0x/",
    "https://1.2.3.0x/",
    "https://134744072/",
    "https://0x08080808/",
    "https://010.8.8.8/",
    "https://8.8.8.008/",
    "https://8.8.8.8.8/",
    "https://256.1.1.1/",
    "https://8.8.8.8./",
    "https://example.1/",
    "https://[::ffff:0808:0808]:x/",
    "https://[2A00:1450:0000::1]/",
    "https://[2a00:1450:0:0:0:0:0:1]/",
    "https://[2a00:1450::0001]/",
    "https://[2a00:1450::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[v1.x]/",
    "https://[8.8.8.8]/",
    "https://[]/",
    "https://[::1/",
    "https://::1/",
    "https://2a00:1450::1/",
]


@pytest.mark.parametrize("url", REFUSED_TEXTS)
def test_whatever_could_be_read_two_ways_is_refused_with_a_sentence(url):
    assert isinstance(addresses.target_of(url, NONE), str)


PRIVATE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "::",
    "::1",
    "::7f00:1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public_is_refused_whatever_wraps_it(address):
    found = ipaddress.ip_address(address)
    target = Target("example.org", 443, is_plain=False, literal=None)
    assert "is no public address" in (addresses.refusal([found], target, NONE) or "")


PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "203.0.114.7",
    "192.0.1.1",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.0.1",
    "2a00:1450::1",
    "2606:4700::1111",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_accepted(address):
    target = Target("example.org", 443, is_plain=False, literal=None)
    assert addresses.refusal([ipaddress.ip_address(address)], target, NONE) is None


def test_one_bad_address_refuses_all_and_none_refuses_too():
    target = Target("example.org", 443, is_plain=False, literal=None)
    good, bad = ipaddress.ip_address("1.1.1.1"), ipaddress.ip_address("10.0.0.1")
    assert addresses.refusal([good, good], target, NONE) is None
    assert "10.0.0.1" in (addresses.refusal([good, bad], target, NONE) or "")
    assert addresses.refusal([], target, NONE) == "example.org has no address."


def test_the_operator_may_open_ports_and_networks():
    assert isinstance(addresses.target_of("https://example.org:8443/", HERE), Target)
    assert isinstance(addresses.target_of("https://example.org:8444/", HERE), str)
    target = Target("hooks.internal", 443, is_plain=False, literal=None)
    for address, is_accepted in (
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("10.2.2.3", False),
        ("2002:a01:203::1", False),
        ("127.0.0.1", False),
    ):
        refusal = addresses.refusal([ipaddress.ip_address(address)], target, INSIDE)
        assert (refusal is None) is is_accepted, address


@pytest.mark.parametrize(
    ("url", "rules", "is_accepted"),
    [
        ("http://127.0.0.1:9000/", HERE, True),
        ("http://127.0.0.1:9001/", HERE, False),
        ("http://127.0.0.1/", HERE, False),
        ("http://127.0.0.1:9000/", NONE, False),
        ("http://1.1.1.1:9000/", HERE, False),
        ("http://10.1.0.1:80/", INSIDE, False),
    ],
)
def test_plain_http_goes_to_a_named_loopback_network_alone(url, rules, is_accepted):
    target = addresses.target_of(url, rules)
    refused = isinstance(target, str) or (
        target.literal is not None
        and addresses.refusal([target.literal], target, rules) is not None
    )
    assert refused is not is_accepted


def test_more_than_150_forms_are_judged():
    assert len(REFUSED_TEXTS) + len(PRIVATE) + len(ACCEPTED) + len(PUBLIC) > 150
