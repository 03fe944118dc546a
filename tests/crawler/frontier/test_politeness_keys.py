"""Which hosts share a queue."""

from typing import get_args

import pytest

from freshet.crawler.frontier.politeness import QueueKind, queue_key

ADDRESSES = {
    "www.example.org": ["192.0.2.9", "192.0.2.10"],
    "shop.example.org": ["192.0.2.10", "192.0.2.9"],
}


async def addresses(host: str) -> list[str]:
    return ADDRESSES.get(host, [])


async def key_of(url: str, kind: QueueKind, groups: dict[str, list[str]] | None = None) -> str:
    return await queue_key(url, kind, groups or {}, addresses)


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
    assert await key_of(url, "host") == key


@pytest.mark.parametrize(
    ("url", "key"),
    [("https://www.example.org/a", "example.org"),
     ("https://deep.shop.example.org:8443", "example.org"),
     ("https://a.example.co.uk/", "example.co.uk"), ("https://one.github.io/", "one.github.io"),
     ("http://192.0.2.9/", "192.0.2.9")],
)  # fmt: skip
async def test_a_domain_is_the_registrable_one(url: str, key: str) -> None:
    assert await key_of(url, "domain") == key


async def test_hosts_at_one_address_share_a_queue_whatever_the_order_of_the_answer() -> None:
    assert await key_of("https://www.example.org/", "ip") == "192.0.2.10"
    assert await key_of("https://shop.example.org/", "ip") == "192.0.2.10"


async def test_a_host_without_an_address_has_a_queue_of_its_own() -> None:
    assert await key_of("https://none.example/", "ip") == "none.example"


@pytest.mark.parametrize("kind", get_args(QueueKind))
async def test_a_group_comes_before_every_kind_and_the_first_that_fits_wins(
    kind: QueueKind,
) -> None:
    groups = {"wiki": ["*.Wiki.example", "wiki.example"], "all": ["*.example"]}
    assert await key_of("https://de.wiki.example/x", kind, groups) == "group wiki"
    assert await key_of("https://wiki.example:8080/", kind, groups) == "group wiki"
    assert await key_of("https://other.example/", kind, groups) == "group all"
    assert not (await key_of("https://www.example.org/", kind, groups)).startswith("group")
