"""The study of a small search, on few days."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from freshet.crawler.extensions.readers.promotion import selective_law
from scripts.reproductions import small_search
from scripts.reproductions import small_search_audience as audience
from scripts.reproductions.small_search import ORDERS, Order, Seen, Setting, merged, simulate


def test_one_command_prints_the_tables_and_writes_the_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--output", str(tmp_path), "--runs", "2", "--days", "10"]
    monkeypatch.setattr(sys, "argv", ["reproduce", *options])
    monkeypatch.setattr(small_search, "ORDERS", ORDERS[:2])
    monkeypatch.setattr(small_search, "ROBUST", ORDERS[-1:])
    monkeypatch.setattr(small_search, "HOUSEHOLD", ("relevance", "oracle"))
    monkeypatch.setattr(small_search, "COMMUNITY", {"likes": "0.39"})
    small_search.main()
    assert {path.name for path in tmp_path.iterdir()} == {"small_search.png", "small_search.csv"}
    with (tmp_path / "small_search.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 + 4 + 2 * 3 + 1
    assert all(float(each["mean"]) > 0 for each in rows)
    shown = capsys.readouterr().out
    for words in ("100 a day", "(0.7)", "30% noise", "week 13", "(0.39)"):
        assert words in shown


def test_many_merged_lists_have_the_law_of_single_places() -> None:
    pages, pool = 30, 12
    ranked = np.arange(pages)[None]
    shown, new = merged(ranked, ranked >= pages - pool, 20_000, (2, 0.3), np.random.default_rng(1))
    assert (shown[0, :, 0] == 0).all()
    assert (np.sort(shown, axis=2)[..., 1:] != np.sort(shown, axis=2)[..., :-1]).all()
    for place in (2, 5, 10):
        law = selective_law(place, ranked=pages - pool, pool=pool, k=2, r=0.3)
        found = np.bincount(np.minimum(shown[0, :, place - 1], pages - pool), minlength=len(law))
        assert found / 20_000 == pytest.approx(law, abs=0.015)
        assert new[0, :, place - 1].mean() == pytest.approx(law[-1], abs=0.015)


def test_a_page_that_was_promoted_does_not_stand_twice() -> None:
    pool = np.zeros((1, 11), bool)
    pool[0, :3] = True  # the first ones of the ranked pages, too
    shown, new = merged(np.arange(11)[None], pool, 500, (1, 0.5), np.random.default_rng(2))
    assert (np.diff(np.sort(shown, axis=2), axis=2) > 0).all()
    assert (shown[new] < 3).all()


def seen(shown: np.ndarray, opens: np.ndarray) -> Seen:
    """Return what was seen of pages in one run that were shown at the first place."""
    places = np.zeros((1, len(opens), 10))
    places[0, :, 0] = shown
    none = np.zeros((1, 10))
    section = np.arange(len(opens)) % 10
    return Seen(section, places, opens[None], 1 / np.arange(1, 11)[None], none, none, lists=100)


def test_worth_is_as_written() -> None:
    state = seen(np.array([40.0, 0.0]), np.array([10.0, 0.0]))
    mean = 11 / 42
    assert small_search.of_all(state)[0] == pytest.approx([(4 * mean + 10) / 44, mean])
    of_first = (4 * mean + 10) / 44
    assert small_search.of_section(state)[0] == pytest.approx([(6 * of_first + 10) / 46, mean])
    assert small_search.index(state)[0, 1] > small_search.of_section(state)[0, 1]
    bonus = np.sqrt(2 * np.log(100) / 40)
    assert small_search.bmix(state)[0] == pytest.approx([0.25 + bonus, np.inf])
    tuned = np.sqrt(np.log(100) / 40 * 0.25)  # as the variance with its bonus is above 1/4
    assert small_search.bmix(state, tuned=True)[0, 0] == pytest.approx(0.25 + tuned)


def test_opens_tell_which_pages_are_good_and_showings_at_low_places_do_not() -> None:
    setting = Setting(searches=20, runs=3, days=60, counted_from=20)
    views, showings, chance = (
        simulate(order, setting).mean()
        for order in (ORDERS[4], ORDERS[8], Order("chance", lambda s: np.zeros_like(s.opens)))
    )
    assert 0 < chance < showings < views < 1
    assert simulate(ORDERS[4], setting).mean() == views


def test_the_attention_is_learnt_from_what_was_promoted() -> None:
    state = seen(np.ones(200), np.zeros(200))
    state.promoted = np.full((1, 10), 4000.0)
    state.promoted_opens = np.round(1200.0 * np.arange(1.0, 11.0)[None] ** -1.5)
    small_search.fit(state, learns_attention=True)
    assert state.attention[0, 1] == pytest.approx(2**-1.5, abs=0.02)


def test_who_likes_what_is_seen_and_who_knows_what_is_good_open_more() -> None:
    setting = {"runs": 2, "days": 120, "counted_from": 60, "seed": 1, "pages": 200}
    assert 0 < audience.community("likes", **setting).mean() < 1
    with_pool = audience._promoted(np.arange(50), np.arange(50) >= 25, np.random.default_rng(1))
    assert sorted(with_pool) == list(range(50))
    assert (np.diff(with_pool[with_pool < 25]) > 0).all()
    found = [audience.household(rule, weeks=2, seed=3, pages=400) for rule in audience.HOUSEHOLD]
    assert (found[-1] > found[0]).all()
    assert found[1][1] > found[0][1]
