from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.fetch.addresses import AddressGuard, is_disguised

PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:4700::6810:85e5", "172.15.0.1", "172.32.0.1"]
PRIVATE = ["127.0.0.1", "127.9.9.9", "::1", "10.0.0.1", "172.16.0.1", "192.168.1.1",
           "100.64.0.1", "fd12::1"]  # fmt: skip
CLOSED = ["0.0.0.0", "0.1.2.3", "::", "169.254.1.1", "fe80::1", "fe80::1%eth0", "224.0.0.1",
          "ff02::1", "192.0.2.1", "198.51.100.7", "203.0.113.7", "2001:db8::1", "198.18.0.1",
          "240.0.0.1", "255.255.255.255", "192.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "100::1",
          "::2", "4000::1"]  # fmt: skip
METADATA = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16",
            "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"]  # fmt: skip


def wrapped(address: str) -> list[str]:
    """Every IPv6 address that stands for an IPv4 address."""
    number = int(IPv4Address(address))
    return [
        f"::ffff:{address}",
        str(IPv6Address(number)),
        str(IPv6Address(int(IPv6Address("64:ff9b::")) + number)),
        str(IPv6Address((0x2002 << 112) + (number << 80) + 1)),
        # Teredo: the server's address, flags and port, the client's address inverted.
        str(IPv6Address((0x20010000 << 96) + (0x08080808 << 64) + (number ^ 0xFFFFFFFF))),
        str(IPv6Address((0x20010000 << 96) + (number << 64) + (0x08080808 ^ 0xFFFFFFFF))),
    ]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_contacted(address: str) -> None:
    assert AddressGuard().refusal(address) is None


@pytest.mark.parametrize("address", [*PRIVATE, *CLOSED, *METADATA])
def test_addresses_that_are_no_public_server_are_refused(address: str) -> None:
    assert AddressGuard().refusal(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_the_switch_opens_private_networks(address: str) -> None:
    assert AddressGuard(allow_private=True).refusal(address) is None


@pytest.mark.parametrize("address", [*CLOSED, *METADATA])
def test_the_switch_opens_neither_link_local_nor_metadata_nor_reserved_networks(
    address: str,
) -> None:
    assert AddressGuard(allow_private=True).refusal(address)


def test_a_named_network_is_opened_alone() -> None:
    guard = AddressGuard(allow_networks=(ip_network("10.1.0.0/16"), ip_network("fd00:1::/64")))
    assert guard.refusal("10.1.2.3") is None
    assert guard.refusal("fd00:1::7") is None
    assert guard.refusal("10.2.0.1")
    assert guard.refusal("127.0.0.1")


def test_a_named_network_opens_even_the_metadata_address() -> None:
    guard = AddressGuard(allow_networks=(ip_network("169.254.169.254/32"),))
    assert guard.refusal("169.254.169.254") is None
    assert guard.refusal("169.254.169.253")


@pytest.mark.parametrize("address", PUBLIC)
def test_without_a_contact_only_loopback_may_be_contacted(address: str) -> None:
    guard = AddressGuard(allow_private=True, loopback_only=True)
    assert "contact" in (guard.refusal(address) or "")
    assert guard.refusal("192.168.1.1")
    assert guard.refusal("127.0.0.1") is None
    assert guard.refusal("::1") is None
    assert guard.refusal("::ffff:127.0.0.1") is None


def test_loopback_only_narrows_and_never_opens() -> None:
    assert AddressGuard(loopback_only=True).refusal("127.0.0.1")
    open_network = AddressGuard(allow_networks=(ip_network("10.0.0.0/8"),), loopback_only=True)
    assert open_network.refusal("10.0.0.1")


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1"])
def test_no_ipv6_wrapping_hides_an_ipv4_address(address: str) -> None:
    for spelling in wrapped(address):
        assert AddressGuard().refusal(spelling), spelling


def test_a_wrapped_public_address_may_be_contacted() -> None:
    for spelling in wrapped("93.184.216.34"):
        assert AddressGuard().refusal(spelling) is None, spelling


@given(st.ip_addresses(v=4).map(str))
def test_a_wrapped_address_is_never_judged_more_mildly(address: str) -> None:
    guard = AddressGuard()
    if guard.refusal(address) is not None:
        assert guard.refusal(f"::ffff:{address}")


@pytest.mark.parametrize("text", ["", "example.org", "127.1", "0x7f000001", "1.2.3.4.5"])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert AddressGuard(allow_private=True).refusal(text)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "0177.0.0.1", "0x7f000001",
                                  "127.0.0.1.", "1.2.3.4.5", "0X7F.0.0.1"])  # fmt: skip
def test_numeric_hosts_in_other_spellings_are_disguised(host: str) -> None:
    assert is_disguised(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "example.org", "4chan.org", "0x.org", "::1",
                                  "::ffff:127.0.0.1", "",
                                  "example.org.", "1.2.3.4.in-addr.arpa"])  # fmt: skip
def test_names_and_canonical_addresses_are_not_disguised(host: str) -> None:
    assert not is_disguised(host)
