"""The synthetic web on sockets: what is answered, what is logged, and the command."""

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest

from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S, SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.web import showcase
from scripts.synthetic_server import (
    LoggedExchange,
    SitePlacement,
    WebClock,
    WebServer,
    main,
    plain,
    serve,
)
from tests.crawler.extensions.lab.synthetic_web.browsing import departures, get, responder_for

WEB = showcase()


async def ask(
    server: WebServer, name: str, target: str = "/", method: str = "GET", **headers: str
) -> tuple[int, bytes, Mapping[str, str]]:
    """By address and Host header: the names need no resolver."""
    netloc = server.addresses.authorities.get(name, name)
    port = netloc.rpartition(":")[2]
    sent = {"Host": netloc, **{key.replace("_", "-"): value for key, value in headers.items()}}
    url = f"http://127.0.0.1:{port if port.isdigit() else server_port(server)}{target}"
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, headers=sent, allow_redirects=False) as response,
    ):
        return response.status, await response.read(), response.headers


def server_port(server: WebServer) -> str:
    return server.url("news").rpartition(":")[2].rstrip("/")


async def test_one_port_serves_all_sites_by_name() -> None:
    async with serve(WEB) as server:
        ports = {url.rpartition(":")[2] for url in map(server.url, WEB.sites)}
        assert len(ports) == 1
        expected = responder_for(WEB, int(server_port(server)))
        for name in ("news", "shop", "old"):
            status, body, headers = await ask(server, name)
            answer = get(expected, SyntheticUrl(name, "/"), WEB.start_at)
            assert (status, body) == (answer.status, answer.body)
            assert all(headers[key] == value for key, value in answer.headers)


async def test_an_unknown_host_is_misdirected() -> None:
    async with serve(WEB) as server:
        assert (await ask(server, "else.localhost"))[0] == 421


async def test_the_target_arrives_byte_for_byte() -> None:
    async with serve(WEB) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server_port(server)))
        netloc = server.addresses.authorities["zoo"]
        head = f"GET /%7Euser/percent%2Dencoded HTTP/1.1\r\nHost: {netloc}\r\n\r\n"
        writer.write(head.encode())
        assert b" 200 " in await reader.readline()
        writer.close()
        await writer.wait_closed()
    assert server.log[-1].target == "/%7Euser/percent%2Dencoded"


async def test_a_conditional_request_is_answered_304_without_a_body() -> None:
    async with serve(WEB) as server:
        _, _, headers = await ask(server, "docs")
        again = await ask(server, "docs", If_None_Match=headers["ETag"])
        assert again[:2] == (304, b"")
        assert "Content-Type" not in again[2]
        since = await ask(server, "wiki", If_Modified_Since="Sun, 01 Jan 2040 00:00:00 GMT")
        assert since[0] == 304


async def test_head_has_the_length_and_no_body_and_other_methods_are_refused() -> None:
    async with serve(WEB) as server:
        status, body, headers = await ask(server, "docs", method="HEAD")
        assert (status, body) == (200, b"")
        assert int(headers["Content-Length"]) > 1000
        status, _, headers = await ask(server, "docs", method="POST")
        assert (status, headers["Allow"]) == (405, "GET, HEAD")


async def test_the_owner_moves_the_time() -> None:
    clock = WebClock(WEB.start_at)
    place, died_at = next((p, at) for p, at, moved_to in departures(WEB) if moved_to is None)
    async with serve(WEB, clock) as server:
        assert (await ask(server, *place))[0] == 200
        server.clock.set(died_at)
        assert (await ask(server, *place))[0] == 410
    assert [exchange.at for exchange in server.log] == [WEB.start_at, died_at]


async def test_the_log_has_start_and_end_of_every_exchange() -> None:
    seconds = iter(range(100))
    received: list[LoggedExchange] = []
    async with serve(WEB, seconds=lambda: next(seconds), on_exchange=received.append) as server:
        _, body, _ = await ask(server, "docs", "/guide/?x=1")
        await ask(server, "docs", "/guide/")
        await ask(server, "nobody.localhost")
    assert received == list(server.log)
    assert [(e.host, e.target, e.status) for e in received] == [
        ("docs", "/guide/?x=1", 404),
        ("docs", "/guide/", 200),
        ("nobody.localhost", "/", 421),
    ]
    assert received[0].size_bytes == len(body)
    assert all(exchange.started_at < exchange.ended_at for exchange in received)
    assert all(a.ended_at < b.started_at for a, b in pairwise(received))


async def test_the_log_forgets_the_oldest() -> None:
    async with serve(plain(1, 3), log_size=2) as server:
        for target in ("/", "/page-1", "/page-2"):
            await ask(server, "h1", target)
    assert [exchange.target for exchange in server.log] == ["/page-1", "/page-2"]


async def test_latency_delays_a_site_within_the_logged_exchange() -> None:
    async with serve(plain(2, 1), latency_s={"h2": 0.05}) as server:
        await asyncio.gather(ask(server, "h1"), ask(server, "h2"))
    took = {exchange.host: exchange.ended_at - exchange.started_at for exchange in server.log}
    assert took["h2"] > 0.04


@pytest.mark.parametrize("placement", [SitePlacement.PORTS, SitePlacement.ADDRESSES])
async def test_each_site_can_have_a_port_or_an_address_of_its_own(placement: SitePlacement) -> None:
    web = plain(3, 2)
    async with serve(web, placement=placement) as server:
        urls = [server.url(name) for name in web.sites]
        assert len({url.partition("//")[2] for url in urls}) == 3
        hosts = {url.split("/")[2].partition(":")[0] for url in urls}
        assert len(hosts) == (1 if placement is SitePlacement.PORTS else 3)
        async with aiohttp.ClientSession() as session:
            for url in urls:
                async with session.get(url) as response:
                    assert response.status == 200
    assert [exchange.host for exchange in server.log] == ["h1", "h2", "h3"]


async def test_a_port_that_is_taken_is_an_error_that_leaves_nothing_open() -> None:
    async with serve(plain(1, 1)) as server:
        port = int(server.url("h1").rstrip("/").rpartition(":")[2])
        for placement in (SitePlacement.NAMES, SitePlacement.PORTS):
            with pytest.raises(OSError, match="in use"):
                async with serve(plain(2, 1), port=port, placement=placement):
                    pass


async def test_a_client_that_leaves_is_logged_and_hurts_nobody() -> None:
    async with serve(WEB, latency_s={"zoo": 0.02}) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", int(server_port(server)))
        netloc = server.addresses.authorities["zoo"]
        writer.write(f"GET /large HTTP/1.1\r\nHost: {netloc}\r\n\r\n".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await ask(server, "docs"))[0] == 200
    assert {exchange.host for exchange in server.log} == {"docs", "zoo"}


async def test_time_advances_by_days() -> None:
    async with serve(WEB) as server:
        before = (await ask(server, "news", "/"))[1]
        server.clock.advance(2 * DAY_S)
        after = (await ask(server, "news", "/"))[1]
    assert before.count(b"<li>") == after.count(b"<li>")
    assert b"2026-01-03 00:00:00" in after


# -- clock ----------------------------------------------------------------------------


def test_a_clock_stands_still_until_it_is_advanced() -> None:
    clock = WebClock(100.0)
    assert clock.now() == 100.0
    assert clock.advance(5.0) == clock.now() == 105.0
    assert clock.set(200.0) == clock.now() == 200.0


def test_a_clock_with_a_speed_runs_with_real_time() -> None:
    real = [10.0]
    clock = WebClock(100.0, speed=60.0, monotonic=lambda: real[0])
    real[0] = 12.0
    assert clock.now() == 220.0
    assert clock.advance(1000.0) == 1220.0
    real[0] = 13.0
    assert clock.now() == 1280.0
    assert clock.set(5000.0) == 5000.0


def test_time_does_not_go_back() -> None:
    clock = WebClock(100.0)
    with pytest.raises(ValueError, match="does not go back"):
        clock.set(99.0)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1.0)


# -- command --------------------------------------------------------------------------


async def start(*arguments: str) -> tuple[asyncio.subprocess.Process, dict[str, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "scripts.synthetic_server", *arguments,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    announcement = json.loads(await process.stdout.readline())
    sites: dict[str, str] = announcement["sites"]
    return process, sites


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_announces_its_sites_serves_them_and_stops_on_a_signal(
    number: signal.Signals, tmp_path: Path
) -> None:
    log = tmp_path / "exchanges.jsonl"
    process, sites = await start(
        "--preset", "plain", "--hosts", "2", "--placement", "ports", "--log", str(log)
    )
    assert list(sites) == ["h1", "h2"]
    async with aiohttp.ClientSession() as session, session.get(sites["h2"]) as response:
        assert response.status == 200
    process.send_signal(number)
    assert await process.wait() == 0
    (line,) = log.read_text().splitlines()
    assert (json.loads(line)["host"], json.loads(line)["target"]) == ("h2", "/")


def test_it_stops_by_itself_after_its_duration(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--preset", "showcase", "--no-traps", "--duration", "0", "--advance-days", "2"])
    announcement = json.loads(capsys.readouterr().out)
    assert announcement["at"] == 1_767_225_600.0 + 2 * 86_400
    assert announcement["sites"].keys() >= {"news", "old", "zoo"}


@pytest.mark.parametrize(
    "arguments",
    [["--preset", "huge"], ["--hosts", "many"], ["--pages", "0"], ["--span-days", "-1"],
     ["--what"]],
)  # fmt: skip
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage:" in capsys.readouterr().err


def test_a_port_that_is_taken_is_one_line_and_exits_with_1() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(SystemExit, match="cannot serve: "),
    ):
        main(["--port", str(taken.getsockname()[1]), "--duration", "0"])
