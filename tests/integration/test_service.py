"""A daemon on the synthetic web, as its manager and its monitoring see it."""

import asyncio
import json
import shutil
import socket
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from freshet.config.settings import Operation
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.run.service import Service
from freshet.storage.records import FetchResult
from tests.integration.quick import quick, unwatched
from tests.integration.test_daemon import DAY_S, Stage

OPERATION = quick(operation__listen="127.0.0.1:0").operation
LAST = 100
Look = Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class Looked:
    """Lets somebody look at the service while the last request is under way."""

    inner: Fetcher
    service: Service
    visit: Look
    asked: int = 0

    async def fetch(self, request: Request) -> FetchResult:
        self.asked += 1
        if self.asked == LAST:
            assert self.service.address is not None
            await self.visit(self.service.address)
        return await self.inner.fetch(request)


async def served(
    stage: Stage, service: Service, visit: Look, reload_at: float = float("inf")
) -> None:
    """Keep two sites for half a day at 240 requests a day."""
    stage.server.hang_up_at = reload_at
    urls = [f"http://{name}.localhost/" for name in ("news", "docs")]
    order = DaemonOrder(stage.db, seeds_from_arguments(urls).seeds, 240.0, time_limit_s=DAY_S / 2)
    async with service:
        await keep(
            quick(daemon__audit_share=0.2), order, watch=unwatched, clock=stage.clock,
            fetcher=Looked(stage.server, service, visit), rng=Random(1),
            reread=partial(replace, order), service=service,
        )  # fmt: skip


async def get(url: str) -> str:
    async with aiohttp.ClientSession() as client, client.get(url) as response:
        assert response.status == 200, await response.text()
        return await response.text()


async def test_a_scrape_tells_what_the_store_will_hold(tmp_path: Path) -> None:
    stage, service = Stage(tmp_path / "crawl.db"), Service(OPERATION)
    found: dict[str, float] = {}
    health: dict[str, object] = {}

    async def visit(address: str) -> None:
        for family in text_string_to_metric_families(await get(f"{address}metrics")):
            for sample in family.samples:
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
        health.update(json.loads(await get(f"{address}healthz")))

    await served(stage, service, visit)
    # The last one has been sent, and those that have not committed are at most in flight.
    assert found["freshet_budget_spent_requests_total"] == LAST
    assert LAST - 9 <= found["freshet_exchanges_total"] < LAST
    assert found["freshet_budget_requests_per_day"] == 240
    assert found["freshet_queue_pages"] > 0
    assert found["freshet_hosts"] == 2
    assert 0 < found["freshet_freshness_expected_ratio"] <= 1
    assert found["freshet_learning_duration_seconds_count"] > 2
    assert found["freshet_store_bytes"] > 0
    assert (health["status"], health["state"], health["spent"]) == ("ok", "fetching", LAST)
    (pages,) = stage.rows("SELECT count(*) FROM observation")
    counted = sum(
        sample.value
        for family in service.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "freshet_observations_total"
    )
    (others,) = stage.rows(
        "SELECT count(*) FROM observation JOIN page ON page.id = page_id WHERE role <> 'page'"
    )
    assert counted == int(str(pages[0])) - int(str(others[0]))


async def test_the_manager_hears_of_start_reload_and_end(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.setblocking(False)
        service = Service(OPERATION, {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "60000000"})

        async def visit(_address: str) -> None:
            return None

        await served(Stage(tmp_path / "crawl.db"), service, visit, reload_at=40)
        messages = []
        while True:
            try:
                messages.append(manager.recv(4096).decode().split("\n")[0])
            except BlockingIOError:
                break
    said = [m for m in messages if m != "WATCHDOG=1" and not m.startswith("STATUS=")]
    assert said == ["READY=1", "RELOADING=1", "READY=1", "STOPPING=1"]


async def test_a_port_that_is_taken_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        async with Service(OPERATION.model_copy(update={"listen": listen})) as service:
            assert service.address is None
    (record,) = caplog.records
    assert record.message == (
        f"operation.listen = {listen}: Address already in use; the daemon runs without "
        "/healthz, /metrics and /v1: choose another address and restart it"
    )


PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool (Debian: prometheus) is not installed")
async def test_promtool_finds_nothing_wrong_with_the_metrics(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    scraped: list[str] = []

    async def visit(address: str) -> None:
        scraped.append(await get(f"{address}metrics"))

    await served(Stage(tmp_path / "crawl.db"), Service(OPERATION), visit)
    checked = await asyncio.to_thread(
        subprocess.run, [PROMTOOL, "check", "metrics"], input=scraped[0], text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_nothing_listens_unless_it_is_asked_for() -> None:
    assert isinstance(OPERATION, Operation)
    assert quick().operation.endpoint is None
