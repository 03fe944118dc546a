"""Charts are well-formed whatever the numbers and words are, and say what they show."""

from __future__ import annotations

from math import inf, nan
from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.lab.charts import (
    Axis,
    Band,
    Bound,
    Frame,
    Interval,
    Line,
    Linear,
    Outcome,
    Shares,
    bound_sample,
    calibration_chart,
    histogram,
    interval_chart,
    line_chart,
    line_sample,
    marker,
    part_sample,
    share_chart,
    stroke,
    wilson,
)

HOSTILE = "<script>alert(1)</script>\"'&"
values = st.floats(-1e6, 1e6) | st.sampled_from([nan, inf, -inf])


def parsed(markup: str) -> Element:
    assert "nan" not in markup
    assert "inf" not in markup.replace("infinite", "")
    return fromstring(markup)


def frame(*numbers: float) -> Frame:
    scale = Linear.around(numbers)
    return Frame(Axis.of("day", Linear(0.0, 10.0), str), Axis.of("cost", scale, str))


@given(st.lists(st.tuples(values, values), max_size=12))
def test_lines_and_bands_have_gaps_where_nothing_is_known(rows: list[tuple[float, float]]) -> None:
    x = [float(place) for place in range(len(rows))]
    low, high = [row[0] for row in rows], [row[1] for row in rows]
    marks: list[Line | Band | Bound]
    marks = [Band(0, x, low, high, edged=True), Line("a", 1, x, high), Bound(x, low)]
    parsed(line_chart("costs", "all", frame(*low, *high), marks))


def test_a_gap_parts_a_band_and_a_lonely_point_is_seen() -> None:
    x = [0.0, 1.0, 2.0, 3.0, 4.0]
    y = [1.0, 2.0, nan, 3.0, nan]
    root = parsed(line_chart("t", "d", frame(*y), [Band(0, x, y, y), Line("a", 0, x, y)]))
    assert sum("band" in each.get("class", "") for each in root.iter()) == 2
    assert len(list(root.iter("circle"))) == 1


@given(st.lists(st.tuples(values, values, values), max_size=6))
def test_ranges_are_drawn_of_whatever_is_known(rows: list[tuple[float, float, float]]) -> None:
    intervals = [Interval(HOSTILE, k, *row, tip=HOSTILE) for k, row in enumerate(rows)]
    root = parsed(interval_chart("t", "d", intervals, axis="cost", shown=str, bound=nan))
    assert not list(root.iter("script"))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8))
def test_bars_are_as_high_as_their_counts(counts: list[int]) -> None:
    edges = [float(k) for k in range(len(counts) + 1)]
    x = Axis.of("rate", Linear(0.0, float(len(counts))), str)
    drawn = histogram("t", "d", x, edges, counts, axis="pages", tips=str)
    bars = [float(each.get("height", "")) for each in parsed(drawn).iter("rect")]
    assert len(bars) == len(counts)
    assert max(bars) == pytest.approx(bars[counts.index(max(counts))])


def test_shares_fill_the_bar_and_an_empty_row_has_none() -> None:
    rows = [Shares("some", [1, 3, 0]), Shares("none", [0, 0, 0])]
    root = parsed(share_chart("t", "d", ("a", "b", "c"), rows))
    widths = [float(each.get("width", "")) for each in root.iter("rect")]
    assert widths == [86, 258]


@pytest.mark.parametrize("outcomes", [[], [Outcome(nan, 0.1, 0.0, 1.0, 4.0, "x")]])
def test_a_calibration_of_nothing_is_only_a_frame(outcomes: list[Outcome]) -> None:
    assert not list(parsed(calibration_chart("t", "d", 0, outcomes, ("x", "y"))).iter("circle"))


def test_a_chart_tells_its_title_and_description_first() -> None:
    outcome = Outcome(0.5, 0.4, 0.3, 0.5, 9.0, HOSTILE)
    root = parsed(calibration_chart(HOSTILE, "what it shows", 2, [outcome], ("x", "y")))
    assert [child.tag for child in root][:2] == ["title", "desc"]
    assert root[0].text == HOSTILE == root.get("aria-label")
    assert root.get("role") == "img"


@given(st.integers(1, 10**6), st.data())
def test_wilsons_interval_holds_the_share(of: int, data: st.DataObject) -> None:
    came = data.draw(st.integers(0, of))
    low, high = wilson(came, of)
    assert 0 <= low <= came / of + 1e-12
    assert came / of - 1e-12 <= high <= 1


def test_wilsons_interval_is_the_published_one() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    with pytest.raises(ValueError, match="share of nothing"):
        wilson(0, 0)


def test_styles_differ_by_more_than_colour() -> None:
    assert len({stroke(style) for style in range(40)}) == 40
    assert len({marker(0, 0, style, "") for style in range(24)}) == 24
    for sample in (line_sample(3), bound_sample(), part_sample(1)):
        assert parsed(sample).get("aria-hidden") == "true"
