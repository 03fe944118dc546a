import asyncio
import gzip
import os
import tracemalloc
from collections.abc import AsyncIterator, Iterable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch.body import BodyPace, BodyRules, HeldBytes, Intake

KIB = 1024


async def arriving(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def unhurried() -> BodyPace:
    return BodyPace(0, 20, 300, asyncio.get_running_loop().time())


def intake(
    coding: str = "", max_bytes: int = 64 * KIB, *, may_cut: bool = False, is_sniffed: bool = False
) -> Intake:
    return Intake(coding, BodyRules(max_bytes, may_cut=may_cut, is_sniffed=is_sniffed))


async def take(taken: Intake, *chunks: bytes) -> tuple[bytes, bytes]:
    await taken.read(arriving(*chunks), unhurried())
    return taken.result()


async def failure(taken: Intake, *chunks: bytes) -> Unfetched:
    with pytest.raises(Unfetched) as caught:
        await take(taken, *chunks)
    return caught.value


async def test_a_plain_body_is_held_once() -> None:
    wire, decoded = await take(intake(), b"one ", b"two")
    assert decoded == b"one two"
    assert wire is decoded


async def test_an_encoded_body_is_kept_as_it_came_too() -> None:
    wire = gzip.compress(b"text" * 100)
    assert await take(intake("gzip"), wire[:7], wire[7:]) == (wire, b"text" * 100)


async def test_a_body_of_exactly_the_limit_passes_and_a_longer_one_is_too_large() -> None:
    _, decoded = await take(intake(max_bytes=10), b"12345", b"67890")
    assert decoded == b"1234567890"
    end = await failure(intake(max_bytes=10), b"12345", b"67890", b"x")
    assert end.reason == "too_large"


@pytest.mark.parametrize("coding", ["", "gzip"])
async def test_where_cutting_is_allowed_the_body_ends_at_the_limit(coding: str) -> None:
    text = b"User-agent: *\n" * 100
    wire = gzip.compress(text) if coding else text
    _, decoded = await take(intake(coding, 100, may_cut=True), wire)
    assert decoded == text[:100]


async def test_a_body_that_is_all_wire_and_no_content_is_too_large() -> None:
    endless_nothing = gzip.compress(b"") * 10
    for may_cut in (False, True):
        end = await failure(intake("gzip", 100, may_cut=may_cut), *[endless_nothing] * 2)
        assert (end.reason, "wire" in end.detail) == ("too_large", True)


async def test_an_encoded_body_without_its_end_is_cut_short() -> None:
    end = await failure(intake("gzip"), gzip.compress(os.urandom(KIB))[:-10])
    assert end.reason == "cut_short"


async def test_a_corrupt_body_raises_what_the_decoder_says() -> None:
    end = await failure(intake("gzip"), b"\x89PNG\r\n\x1a\n\0\0")
    assert (end.reason, "header" in end.detail) == ("encoding", True)


async def test_an_unlabelled_body_must_begin_like_text() -> None:
    end = await failure(intake(is_sniffed=True), b"\x89PNG\r\n\x1a\n\0\0")
    assert (end.outcome, end.reason) == ("skipped", "content_type")
    _, decoded = await take(intake(is_sniffed=True), b"<!doctype html>", b"\0")
    assert decoded == b"<!doctype html>\0"


async def test_a_body_that_stalls_ends_though_no_byte_comes() -> None:
    async def stalling() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    with pytest.raises(Unfetched, match="too_slow"):
        await intake().read(stalling(), BodyPace(100, 0.05, 300, loop.time()))
    with pytest.raises(Unfetched, match="timeout_body"):
        await intake().read(stalling(), BodyPace(0, 20, 0.05, loop.time()))


async def test_other_tasks_run_while_a_bomb_goes_off() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    end = await failure(intake("gzip", 8 * KIB * KIB), gzip.compress(bytes(16 * KIB * KIB)))
    counting.cancel()
    assert end.reason == "too_large"
    assert turns > 8 * KIB * KIB / (512 * KIB)


async def test_bombs_that_go_off_at_once_take_the_memory_of_one() -> None:
    bomb, held = zstandard.compress(bytes(9 * KIB * KIB)), HeldBytes(KIB * KIB)

    async def read() -> int:
        taken = intake("zstd", 16 * KIB * KIB)
        await taken.read(arriving(bomb), unhurried(), held)
        return len(taken.result()[1])

    tracemalloc.start()
    sizes = await asyncio.gather(*(read() for _ in range(16)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sizes == [9 * KIB * KIB] * 16
    # The body, its parts before they are joined, and a copy of it.
    assert peak < 36 * KIB * KIB


async def test_a_short_body_is_decoded_while_others_hold_all_memory() -> None:
    held, first = HeldBytes(1), asyncio.create_task(asyncio.Event().wait())
    held._held[first], held._total = 2, 2
    taken = intake("gzip")
    await taken.read(arriving(gzip.compress(b"text")), unhurried(), held)
    assert taken.result()[1] == b"text"
    first.cancel()


def pace(start: float = 0.0) -> BodyPace:
    return BodyPace(min_rate_bytes_per_s=100, window_s=10, timeout_s=60, now=start)


def test_a_window_ends_unless_its_share_has_come() -> None:
    slow = pace()
    assert slow.deadline == 10
    slow.received(999, 9)
    assert slow.deadline == 10
    assert slow.missed().reason == "too_slow"
    slow.received(1, 9.5)
    assert slow.deadline == 19.5


def test_the_whole_body_has_its_own_end() -> None:
    steady = pace()
    for second in range(1, 59):
        steady.received(100, second)
    assert steady.deadline == 60
    assert steady.missed().reason == "timeout_body"


def test_no_rate_asks_for_nothing_but_the_end() -> None:
    patient = BodyPace(0, 10, 60, now=5)
    assert patient.deadline == 65
    assert patient.missed().reason == "timeout_body"


def survives(rate: float, times: Iterable[float], sizes: Iterable[int]) -> bool:
    """Whether a body with these arrivals keeps the pace to its last byte."""
    tested = BodyPace(rate, 10, 1e9, now=0)
    for at, size in zip(times, sizes, strict=True):
        if at >= tested.deadline:
            return False
        tested.received(size, at)
    return True


@given(st.integers(1, 200), st.integers(100, 300))
def test_a_drip_below_the_rate_ends_and_one_well_above_goes_on(slow: int, count: int) -> None:
    times = [float(second) for second in range(1, count)]
    below, above = [slow] * len(times), [slow * 3] * len(times)
    assert not survives(slow * 1.5, times, below)
    assert survives(slow * 1.5, times, above)


@pytest.mark.parametrize("made_at", range(0, 4000, 100))
async def test_gzip_under_the_label_of_brotli_is_read_whenever_it_was_made(made_at: int) -> None:
    # The time is in its header, and to brotli some are the beginning of a longer body.
    wire = gzip.compress(b"<p>a page of words</p>\n" * 9, mtime=made_at)
    assert (await take(intake("br"), wire))[1] == b"<p>a page of words</p>\n" * 9


async def test_a_short_beginning_of_brotli_is_cut_short() -> None:
    end = await failure(intake("br"), brotli.compress(b"<p>a page of words</p>\n" * 9)[:3])
    assert end.reason == "cut_short"
