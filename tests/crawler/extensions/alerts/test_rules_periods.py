"""Hours and days that digests cover."""

from datetime import datetime
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.alerts.rules import Channel, channels
from freshet.crawler.extensions.alerts.settings import Alerts
from tests.integration.quick import quick

HOUR_S = 3_600.0
CHANNELS = st.builds(
    Channel, st.just("rule"), st.just(""), st.none(),
    st.sampled_from(["hourly", "daily"]), st.integers(0, 23),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Asia/Beirut"]),
)  # fmt: skip


@given(CHANNELS, st.floats(1.2e9, 2.2e9))
def test_periods_hold_their_moments_and_follow_one_another(rule: Channel, at: float) -> None:
    begin, end = rule.period(at)
    assert begin <= at < end
    assert rule.period(begin) == (begin, end)
    assert rule.period(end)[0] == end
    longest = 1 if rule.mode == "hourly" else 49
    assert end - begin <= longest * HOUR_S


@pytest.mark.parametrize(("day", "hours"), [(28, 24), (29, 23), (30, 24)])
def test_a_day_has_the_hours_that_its_clocks_give_it(day: int, hours: int) -> None:
    zone = ZoneInfo("Europe/Berlin")
    at = datetime(2026, 3, day, 6, 59, tzinfo=zone).timestamp()
    begin, end = Channel("rule", "", None, "daily", 7, "Europe/Berlin").period(at)
    assert datetime.fromtimestamp(end, zone).isoformat() == f"2026-03-{day}T07:00:00+02:00".replace(
        "+02:00", "+01:00" if day == 28 else "+02:00"
    )
    assert end - begin == hours * HOUR_S


def test_what_is_told_at_once_is_always_due() -> None:
    assert Channel("rule", "", None).period(1.8e9) == (-inf, -inf)


def test_a_limit_is_of_digests_the_rule_s_own_before_that_of_all() -> None:
    def most(**rule: object) -> int:
        given = {"name": "r", "match": "*", "url": "https://r.example/"} | rule
        settings = quick(alerts__most=7, alerts__rules=[given])
        return channels(settings.group(Alerts))[0].most

    assert (most(), most(mode="daily"), most(mode="daily", most=3)) == (0, 7, 3)
    with pytest.raises(CrawlError, match="r: most is of digests; set mode to daily"):
        most(most=3)
