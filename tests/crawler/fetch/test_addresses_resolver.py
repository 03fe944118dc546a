import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from freshet.crawler.errors import NoSuchHost
from freshet.crawler.fetch.addresses import CachingResolver, DnsLimits
from tests.crawler.fetch.dns_server import REFUSED, SERVFAIL, NameServer, name_server

RECORDS: dict[str, list[str] | int] = {
    "both.example": ["192.0.2.1", "192.0.2.2", "2001:db8::1"], "v4.example": ["192.0.2.4"],
    "v6.example": ["2001:db8::6"], "empty.example": [], "broken.example": SERVFAIL,
    "closed.example": REFUSED,
}  # fmt: skip


class Hands:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def resolving(
    clock: Hands | None = None, limits: DnsLimits | None = None
) -> AsyncIterator[tuple[CachingResolver, NameServer]]:
    async with name_server(dict(RECORDS)) as server:
        resolver = CachingResolver(limits, nameservers=[server.address], monotonic=clock or Hands())
        try:
            yield resolver, server
        finally:
            await resolver.close()


async def test_both_families_are_returned_for_racing() -> None:
    async with resolving() as (resolver, _):
        found = await resolver.resolve("both.example", 8080)
    assert {r["host"] for r in found} == {"192.0.2.1", "192.0.2.2", "2001:db8::1"}
    assert {r["family"] for r in found} == {socket.AF_INET, socket.AF_INET6}
    assert {r["port"] for r in found} == {8080}


async def test_one_family_is_returned_when_only_that_is_wanted() -> None:
    async with resolving() as (resolver, _):
        found = await resolver.resolve("both.example", family=socket.AF_INET6)
        assert [r["host"] for r in found] == ["2001:db8::1"]
        with pytest.raises(NoSuchHost, match="AF_INET6"):
            await resolver.resolve("v4.example", family=socket.AF_INET6)


async def test_an_answer_is_kept_for_its_ttl_and_no_longer() -> None:
    clock = Hands()
    async with resolving(clock) as (resolver, _):
        await resolver.addresses("v4.example")
        clock.now += 299
        assert "v4.example" in dict(resolver._kept)
        assert resolver._known("v4.example") is not None
        clock.now += 2
        assert resolver._known("v4.example") is None
        assert await resolver.addresses("v4.example") == ["192.0.2.4"]


@pytest.mark.parametrize(("ttl_s", "kept_s"), [(0, 5.0), (300, 300.0), (999_999, 86_400.0)])
async def test_a_ttl_is_kept_between_its_bounds(ttl_s: int, kept_s: float) -> None:
    clock = Hands()
    async with resolving(clock) as (resolver, server):
        server.ttl_s = ttl_s
        await resolver.addresses("v4.example")
        clock.now += kept_s - 0.5
        assert resolver._known("v4.example") is not None
        clock.now += 1
        assert resolver._known("v4.example") is None


async def test_names_are_compared_without_case_and_final_dot() -> None:
    async with resolving() as (resolver, server):
        for spelling in ("v4.example", "V4.Example", "v4.example."):
            assert await resolver.addresses(spelling) == ["192.0.2.4"]
        assert server.asked["v4.example"] == 1


async def test_callers_at_the_same_time_share_one_query() -> None:
    async with resolving() as (resolver, server):
        found = await asyncio.gather(*(resolver.addresses("v4.example") for _ in range(50)))
        assert found == [["192.0.2.4"]] * 50
        assert server.asked["v4.example"] == 1


async def test_a_caller_that_gives_up_does_not_end_the_others_query() -> None:
    async with resolving() as (resolver, _):
        impatient = asyncio.create_task(resolver.addresses("v4.example"))
        patient = asyncio.create_task(resolver.addresses("v4.example"))
        await asyncio.sleep(0)
        impatient.cancel()
        assert await patient == ["192.0.2.4"]
        assert impatient.cancelled()


@pytest.mark.parametrize("name", ["nowhere.example", "empty.example", "a..b", "x" * 300])
async def test_a_name_without_an_address_is_no_such_host(name: str) -> None:
    async with resolving() as (resolver, _):
        with pytest.raises(NoSuchHost, match=name[:253].replace(".", r"\.")):
            await resolver.resolve(name)
        assert await resolver.addresses(name) == []


@pytest.mark.parametrize("name", ["broken.example", "closed.example"])
async def test_a_name_server_that_cannot_tell_is_a_failed_lookup(name: str) -> None:
    async with resolving() as (resolver, _):
        with pytest.raises(OSError, match=name) as caught:
            await resolver.resolve(name)
    assert not isinstance(caught.value, NoSuchHost)


async def test_a_silent_name_server_is_a_failed_lookup() -> None:
    async with resolving(limits=DnsLimits(dns_timeout_s=0.05, dns_tries=1)) as (resolver, server):
        server.silent = True
        with pytest.raises(OSError, match="v4") as caught:
            await resolver.resolve("v4.example")
    assert not isinstance(caught.value, NoSuchHost)


@pytest.mark.parametrize(("name", "kept_s"), [("nowhere.example", 60.0), ("broken.example", 5.0)])
async def test_failures_are_kept_too_those_of_servers_only_briefly(
    name: str, kept_s: float
) -> None:
    clock = Hands()
    async with resolving(clock) as (resolver, server):
        await resolver.addresses(name)
        asked = server.asked[name]
        clock.now += kept_s - 0.5
        await resolver.addresses(name)
        assert server.asked[name] == asked
        clock.now += 1
        assert resolver._known(name) is None


async def test_the_least_recently_used_names_are_forgotten_first() -> None:
    async with resolving(limits=DnsLimits(dns_max_names=2)) as (resolver, _):
        for name in ("v4.example", "v6.example", "v4.example", "both.example"):
            await resolver.addresses(name)
        assert list(resolver._kept) == ["v4.example", "both.example"]


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "shop.localhost", "localhost."])
async def test_localhost_is_loopback_without_a_question(name: str) -> None:
    async with resolving() as (resolver, server):
        assert await resolver.addresses(name) == ["127.0.0.1", "::1"]
        assert not server.asked


async def test_an_override_gives_exactly_its_host_an_address() -> None:
    resolver = CachingResolver(overrides={"Shop.Example": "127.0.0.9", "localhost": "::1"})
    assert await resolver.addresses("shop.example") == ["127.0.0.9"]
    assert await resolver.addresses("localhost") == ["::1"]
    assert [r["port"] for r in await resolver.resolve("shop.example", 81)] == [81]


def test_an_override_must_be_an_address() -> None:
    with pytest.raises(ValueError, match="not-an-address"):
        CachingResolver(overrides={"shop.example": "not-an-address"})


@pytest.mark.parametrize("literal", ["127.0.0.1", "::1", "[2001:db8::1]"])
async def test_an_ip_literal_is_its_own_address(literal: str) -> None:
    assert await CachingResolver().addresses(literal) == [literal.strip("[]")]


async def test_closing_ends_the_queries_under_way() -> None:
    async with resolving() as (resolver, server):
        server.silent = True
        waiting = asyncio.create_task(resolver.addresses("v4.example"))
        await server.heard.wait()
        await resolver.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_both_event_loops_serve(run: Callable[[Awaitable[list[str]]], list[str]]) -> None:
    async def look_up() -> list[str]:
        async with resolving() as (resolver, _):
            return await resolver.addresses("v6.example")

    assert run(look_up()) == ["2001:db8::6"]
