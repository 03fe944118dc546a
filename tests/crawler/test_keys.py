"""Which hosts share a lane."""

import pytest

from freshet.crawler.politeness import LaneKeys, LaneKind

ADDRESSES = {
    "www.example.org": ["192.0.2.9", "192.0.2.10"],
    "shop.example.org": ["192.0.2.10", "192.0.2.9"],
}


async def addresses(host: str) -> list[str]:
    return ADDRESSES.get(host, [])


def keys(kind: LaneKind, groups: dict[str, list[str]] | None = None) -> LaneKeys:
    return LaneKeys(kind, groups or {}, addresses)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://www.example.org/a", "www.example.org"),
        ("http://www.example.org", "www.example.org"),
        ("http://WWW.Example.org/", "www.example.org"),
        ("https://www.example.org:8443/", "www.example.org:8443"),
        ("http://[::1]:8000/", "[::1]:8000"),
    ],
)
async def test_a_host_is_its_name_with_any_port_but_the_web_s_own(url: str, key: str) -> None:
    assert await keys(LaneKind.HOST).key(url) == key


@pytest.mark.parametrize(
    ("url", "key"),
    [("https://www.example.org/a", "example.org"),
     ("https://deep.shop.example.org:8443", "example.org"),
     ("https://a.example.co.uk/", "example.co.uk"), ("https://one.github.io/", "one.github.io"),
     ("http://192.0.2.9/", "192.0.2.9")],
)  # fmt: skip
async def test_a_domain_is_the_registrable_one(url: str, key: str) -> None:
    assert await keys(LaneKind.DOMAIN).key(url) == key


async def test_hosts_at_one_address_share_a_lane_whatever_the_order_of_the_answer() -> None:
    by_address = keys(LaneKind.IP)
    assert await by_address.key("https://www.example.org/") == "192.0.2.10"
    assert await by_address.key("https://shop.example.org/") == "192.0.2.10"


async def test_a_host_without_an_address_has_a_lane_of_its_own() -> None:
    assert await keys(LaneKind.IP).key("https://none.example/") == "none.example"


@pytest.mark.parametrize("kind", list(LaneKind))
async def test_a_group_comes_before_every_kind_and_the_first_that_fits_wins(
    kind: LaneKind,
) -> None:
    grouped = keys(kind, {"wiki": ["*.Wiki.example", "wiki.example"], "all": ["*.example"]})
    assert await grouped.key("https://de.wiki.example/x") == "group wiki"
    assert await grouped.key("https://wiki.example:8080/") == "group wiki"
    assert await grouped.key("https://other.example/") == "group all"
    assert not (await grouped.key("https://www.example.org/")).startswith("group")
