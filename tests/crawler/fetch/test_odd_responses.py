"""Responses that are wrong, and are read as other clients read them, over raw sockets."""

import asyncio

import pytest

from freshet.crawler.fetch.client import FetchLimits
from scripts.benchmarks.odd_responses import CODINGS, HEADS, LENGTHS, TEXT, UNSURE, Odd
from tests.crawler.fetch.test_fetch import exchange

LIMITS = FetchLimits(headers_timeout_s=5, body_timeout_s=5)


def serves(odd: Odd):
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(odd.data)
        await writer.drain()
        if odd.later:
            for _ in range(20):
                await asyncio.sleep(0)
            writer.write(odd.later)
        if odd.ends:
            writer.close()

    return answer


@pytest.mark.parametrize("odd", [*HEADS, *CODINGS, *LENGTHS], ids=lambda odd: odd.name)
async def test_what_other_clients_read_is_read(odd: Odd) -> None:
    result, _ = await exchange(serves(odd), limits=LIMITS)
    assert (result.outcome, result.body, result.detail) == ("fetched", TEXT, None)


@pytest.mark.parametrize("odd", UNSURE, ids=lambda odd: odd.name)
async def test_what_has_no_sure_end_is_refused(odd: Odd) -> None:
    result, server = await exchange(serves(odd), limits=LIMITS)
    assert (result.outcome, result.reason) == ("failed", "protocol")
    assert len(server.requests) == 1
