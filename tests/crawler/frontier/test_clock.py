"""Clocks: one that cannot be set, and one that jumps."""

import asyncio
from math import inf

import pytest

from freshet.crawler.frontier.clock import SteadyClock, VirtualClock

HOUR_S = 3_600.0


class Machine:
    """A machine whose wall clock can be set."""

    def __init__(self) -> None:
        self.passed = 100.0
        self.set_by = 1.8e9

    def clock(self) -> SteadyClock:
        return SteadyClock(wall=lambda: self.passed + self.set_by, steady=lambda: self.passed)


def test_time_is_that_of_the_machine() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.passed += HOUR_S
    assert clock.now() == pytest.approx(1.8e9 + 100 + HOUR_S, abs=1e-3)


@pytest.mark.parametrize("step", [-HOUR_S, HOUR_S])
def test_a_clock_that_is_set_shortens_no_delay_by_more_than_a_hundredth(step: float) -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    machine.set_by += step
    assert clock.now() == before
    machine.passed += 10
    assert 9.9 <= clock.now() - before <= 10.1


@pytest.mark.parametrize("step", [-HOUR_S, HOUR_S])
def test_in_the_end_it_agrees_with_the_clock_that_was_set(step: float) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.set_by += step
    for _ in range(102):
        machine.passed += HOUR_S
        clock.now()
    assert clock.now() == pytest.approx(machine.passed + machine.set_by, abs=1e-3)


def test_after_a_time_that_is_still_to_come_it_goes_on_from_there() -> None:
    machine = Machine()
    clock, virtual = machine.clock(), VirtualClock(1.8e9)
    later = clock.now() + 0.9 * HOUR_S
    for each in (clock, virtual):
        each.go_on_from(later)
        assert each.now() == pytest.approx(later, abs=1e-3)
        each.go_on_from(0.0)
        assert each.now() == pytest.approx(later, abs=1e-3)
    machine.passed += HOUR_S
    assert clock.now() - later == pytest.approx(0.99 * HOUR_S)


async def test_waiting_ends_with_the_event_or_at_its_time() -> None:
    clock, changed = SteadyClock(), asyncio.Event()
    assert not await clock.wait(changed, clock.now() - 1, idle=True)
    changed.set()
    assert await clock.wait(changed, inf, idle=True)


async def test_a_virtual_clock_jumps_where_nothing_is_under_way() -> None:
    clock, changed = VirtualClock(5.0), asyncio.Event()
    assert not await clock.wait(changed, 50.0, idle=True)
    assert clock.now() == 50.0
    assert not await clock.wait(changed, 20.0, idle=True)
    assert clock.now() == 50.0


async def test_it_stands_still_while_something_is_under_way() -> None:
    clock, changed = VirtualClock(5.0), asyncio.Event()
    asyncio.get_running_loop().call_soon(changed.set)
    assert await clock.wait(changed, 50.0, idle=False)
    assert clock.now() == 5.0


async def test_it_does_not_wait_for_ever() -> None:
    with pytest.raises(RuntimeError, match="nothing will ever"):
        await VirtualClock(0.0).wait(asyncio.Event(), inf, idle=True)
