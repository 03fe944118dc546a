"""The listener answers this machine, and nobody who was led here under another name."""

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from freshet.crawler.service.http import Health, HttpServer
from freshet.crawler.service.metrics import Metrics
from tests.integration.quick import quick


class Place:
    """A listener, what it says, and a client."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.listener = self.made()
        self.url = ""
        self.client = aiohttp.ClientSession()

    def made(self) -> HttpServer:
        operation = quick(operation__host_names=["Freshet"]).operation
        return HttpServer(operation, self.health, Metrics("1").registry)

    async def health(self) -> Health:
        return self.problems, {"state": "fetching"}

    async def ask(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, aiohttp.ClientResponse, str]:
        async with self.client.request(method, self.url + path, headers=headers) as response:
            return response.status, response, await response.text()


@pytest_asyncio.fixture
async def place() -> AsyncIterator[Place]:
    it = Place()
    it.url = (await it.listener.open("127.0.0.1", 0)).rstrip("/")
    yield it
    await it.client.close()
    await it.listener.close()


async def test_health_is_200_while_nothing_is_wrong_and_503_with_the_reason(place: Place) -> None:
    status, response, body = await place.ask("/healthz")
    assert (status, response.content_type) == (HTTPStatus.OK, "application/json")
    assert json.loads(body) == {"status": "ok", "problems": [], "state": "fetching"}
    place.problems.append("the store is unavailable")
    status, _, body = await place.ask("/healthz")
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    assert json.loads(body)["problems"] == ["the store is unavailable"]


async def test_metrics_are_in_the_format_that_is_asked_for(place: Place) -> None:
    _, response, body = await place.ask("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=")
    assert "freshet_build_info" in {family.name for family in text_string_to_metric_families(body)}
    _, response, body = await place.ask("/metrics", Accept="application/openmetrics-text")
    assert response.headers["Content-Type"].startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:9464", "localhost:1", "LocalHost", "[::1]:80", "freshet:9464"]
)
async def test_addresses_and_own_names_are_answered(place: Place, host: str) -> None:
    assert (await place.ask("/metrics", Host=host))[0] == HTTPStatus.OK


@pytest.mark.parametrize(
    "host",
    ["rebound.example", "rebound.example:9464", "localhost.example", "127.0.0.1.example", ""],
)
@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/none"])
async def test_a_foreign_name_is_refused(place: Place, path: str, host: str) -> None:
    status, _, body = await place.ask(path, Host=host)
    assert status == HTTPStatus.MISDIRECTED_REQUEST
    assert "freshet_" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "MERGE"])
@pytest.mark.parametrize("path", ["/metrics", "/none"])
async def test_it_can_only_be_read(place: Place, path: str, method: str) -> None:
    status, response, _ = await place.ask(path, method)
    assert (status, response.headers["Allow"]) == (HTTPStatus.METHOD_NOT_ALLOWED, "GET, HEAD")


async def test_head_has_no_body_and_other_paths_say_what_there_is(place: Place) -> None:
    status, response, body = await place.ask("/metrics", "HEAD")
    assert (status, body) == (HTTPStatus.OK, "")
    assert response.headers["Cache-Control"] == "no-store"
    status, response, body = await place.ask("/")
    assert (status, json.loads(body)) == (
        HTTPStatus.NOT_FOUND,
        {"error": "not_found", "reason": "there is no such path; there are /healthz, /metrics"},
    )
    assert response.headers["Server"] == "freshet"


async def test_a_place_that_is_taken_is_an_error_and_leaves_nothing_open(place: Place) -> None:
    port = int(place.url.rpartition(":")[2])
    second = place.made()
    with pytest.raises(OSError, match="address already in use"):
        await second.open("127.0.0.1", port)
    await second.close()
    assert (await place.ask("/healthz"))[0] == HTTPStatus.OK


async def test_connections_that_say_nothing_keep_nobody_out(place: Place) -> None:
    port = int(place.url.rstrip("/").rpartition(":")[2])
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
    assert (await place.ask("/healthz"))[0] == HTTPStatus.OK
    ended = [await asyncio.wait_for(reader.read(), 5) for reader, _ in silent[:36]]
    assert ended == [b""] * 36
    for _, writer in silent:
        writer.close()
