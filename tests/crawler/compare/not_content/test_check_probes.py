"""Visits wait for probes, and no longer than the run can send them."""

import asyncio

import pytest

from freshet.crawler.compare.not_content.check import Probes
from freshet.crawler.frontier.frontier import ProbeRequest
from freshet.storage.records import FetchResult
from tests.crawler.frontier.frontier_world import World

ANSWER = FetchResult("http://h1/none", "gone", 0.0, 0.0, 404)


async def test_who_asks_gets_the_answer_and_the_pool_is_told(world: World) -> None:
    probes, told = Probes(world.frontier.probe), asyncio.Event()
    probes.begin(told.set)
    asked = asyncio.create_task(probes.ask(1, "http://h1/none"))
    await told.wait()
    assert probes.waiting == 1
    assert world.requests(0.0) == [ProbeRequest(1, "http://h1/none", "a")]
    probes.answered(1, ANSWER)
    probes.answered(1, ANSWER)
    assert await asked == ANSWER
    assert probes.waiting == 0


async def test_what_must_not_be_asked_is_not_waited_for(world: World) -> None:
    assert await Probes(world.frontier.probe).ask(2, "http://h2/private/none") is None


async def test_a_run_that_ends_keeps_nobody_waiting(world: World) -> None:
    probes, told = Probes(world.frontier.probe), asyncio.Event()
    probes.begin(told.set)
    asked = asyncio.create_task(probes.ask(1, "http://h1/none"))
    await told.wait()
    probes.give_up()
    assert await asked is None
    assert await probes.ask(1, "http://h1/other") is None


async def test_an_answer_that_comes_after_the_run_is_for_the_next_visit(world: World) -> None:
    """A daemon with a small budget ends a run before the request after the next."""
    probes, told = Probes(world.frontier.probe), asyncio.Event()
    probes.begin(told.set)
    asked = asyncio.create_task(probes.ask(1, "http://h1/none"))
    await told.wait()
    probes.give_up()
    assert await asked is None
    probes.begin(told.set)
    assert world.requests(0.0) == [ProbeRequest(1, "http://h1/none", "a")]
    probes.answered(1, ANSWER)
    assert await probes.ask(1, "http://h1/other") == ANSWER
    assert world.requests(0.0) == []


async def test_an_answer_whose_visit_was_broken_off_is_dropped(world: World) -> None:
    probes = Probes(world.frontier.probe)
    asked = asyncio.create_task(probes.ask(1, "http://h1/none"))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    probes.answered(1, ANSWER)
    assert probes.waiting == 0


async def test_visits_of_one_host_share_a_probe_and_one_may_be_broken_off(world: World) -> None:
    probes = Probes(world.frontier.probe)
    asked = [asyncio.create_task(probes.ask(1, f"http://h1/none-{n}")) for n in range(3)]
    await asyncio.sleep(0)
    assert world.requests(0.0) == [ProbeRequest(1, "http://h1/none-0", "a")]
    asked[0].cancel()
    await asyncio.sleep(0)
    probes.answered(1, ANSWER)
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1:] == [ANSWER, ANSWER]
    assert probes.waiting == 0
