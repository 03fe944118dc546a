import pytest

from freshet.crawler.synthetic_web.web import WebClock


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
