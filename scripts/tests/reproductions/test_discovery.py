"""The reproduction of the thesis's discovery covers, on sites of a few hundred pages."""

from __future__ import annotations

import json
import sqlite3
import sys
import tomllib
from collections.abc import Sequence
from math import e
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.discovery.covers import greedy
from freshet.scheduler.discovery.reveal_graph import Reveals
from scripts.reproductions import discovery
from scripts.reproductions import discovery_measures as measures
from scripts.reproductions import discovery_weekly as within
from scripts.reproductions.courses import snapshots
from scripts.reproductions.discovery_measures import BUDGETS, FIRST, OPTIMAL, Bandit
from scripts.reproductions.discovery_recorded import course, recorded
from scripts.reproductions.growing_site import growing_sites
from tests.scheduler.discovery.graphs import Sets, graphs, reveals

WEEK_S = 7 * 86_400


@pytest.fixture(scope="module")
def sites() -> list[list[Reveals]]:
    return [measures.weeks(each.recrawls()) for each in growing_sites(2, 500, 700, 14, seed=2)]


def run(monkeypatch: pytest.MonkeyPatch, *options: object) -> None:
    monkeypatch.setattr(sys, "argv", ["reproduce", *map(str, options)])
    discovery.main()


@pytest.mark.long
def test_one_command_writes_five_figures_and_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "--quick", "--output", tmp_path)
    figures = {f"discovery_3_{n}.png" for n in range(2, 7)}
    assert {path.name for path in tmp_path.iterdir()} == figures | {"discovery.json"}
    assert all(path.stat().st_size for path in tmp_path.iterdir())
    shown = capsys.readouterr().out
    assert shown.startswith("Not the sites of the thesis")
    assert "Table 3.2 on synthetic sites" in shown
    assert "Appendix 9.1" in shown
    assert "New pages found within seven days" in shown
    assert "10 a week: above on" in shown
    assert "by visits spread over the week" in shown
    assert "Synthetic sites, 7 a week: precedents" in shown
    assert "Recorded sites" not in shown


@pytest.mark.long
def test_json_has_the_table_of_all_algorithms_and_budgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "--quick", "--json", "--output", tmp_path)
    found: Any = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found == json.loads((tmp_path / "discovery.json").read_text("utf-8"))
    rows = found["within_seven_days"]["synthetic sites"]
    assert set(rows) == {*within.NAMES, within.UNIFORM, within.BOUND, OPTIMAL}
    assert all(list(by_budget) == ["1", "3", "10", "30"] for by_budget in rows.values())
    (synthetic,) = found["collections"]
    assert set(synthetic["table"]) == {*measures.TABLE, *measures.BANDITS, OPTIMAL}
    for rows in synthetic["table"].values():
        assert list(rows) == [str(budget) for budget in BUDGETS]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sites", 0), "--sites must be"),
        (("--recorded", "nowhere"), "no *.sqlite.zst is there"),
        (("--output", __file__), "File exists"),
    ],
)
def test_bad_input_gives_one_line(
    options: Sequence[object],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exit_:
        run(monkeypatch, "--output", tmp_path, *options)
    assert exit_.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_the_thesis_is_printed_for_every_budget() -> None:
    printed = tomllib.loads(discovery.THESIS.read_text("utf-8"))
    assert tuple(printed["budgets"]) == BUDGETS
    for row in printed["table"].values():
        assert {len(column) for column in row.values()} == {len(BUDGETS)}


def test_more_budget_finds_more_and_nobody_more_than_who_knows(sites: list[list[Reveals]]) -> None:
    table = measures.table(sites)
    for name, rows in table.items():
        # A bandit learns from what its budget lets it look at: more may teach it worse habits.
        if name not in measures.BANDITS:
            coverage = [rows[budget].coverage for budget in BUDGETS]
            assert coverage == sorted(coverage)
        for budget, row in rows.items():
            assert row.coverage <= table[OPTIMAL][budget].coverage + 1e-12
            assert row.depth <= budget
    assert table[OPTIMAL][BUDGETS[-1]].coverage == 1.0


def test_nothing_by_history_finds_more_than_all_pages_that_ever_revealed(
    sites: list[list[Reveals]],
) -> None:
    limits = measures.limits(sites)
    for name, _ in measures.TABLE.values():
        for every in limits:
            traces = [t for site in sites for t in measures.by_history(site, name, every)]
            assert measures.row(traces).coverage <= limits[every].coverage + 1e-12
    by_week = [t for site in sites for t in measures.by_history(site, "od_win", 1)]
    assert measures.row(by_week).coverage == pytest.approx(limits[1].coverage)


def test_every_week_and_every_age_is_judged_as_often(sites: list[list[Reveals]]) -> None:
    (site, *_) = sites
    weeks = len(site) - FIRST
    week_of = {id(each): week for week, each in enumerate(site)}
    for every in (1, 2, 4, 6):
        ages = [
            week_of[id(now)] - week_of[id(past.recrawls[-1])] for past, now in asked(site, every)
        ]
        assert len(ages) == weeks * max(every - 1, 1)
        assert set(ages) == set(range(1, max(every, 2)))


def asked(site: list[Reveals], every: int) -> list[tuple[Any, Reveals]]:
    """What an algorithm is shown."""
    seen: list[tuple[Any, Reveals]] = []

    def choose(past: Any, now: Reveals) -> Any:
        seen.append((past, now))
        return np.zeros(0, np.int64)

    list(measures.judged(site, choose, every))
    return seen


@given(graphs(), st.randoms(use_true_random=False))
def test_a_trace_is_what_each_beginning_of_the_cover_finds(
    drawn: tuple[Sets, int], random: Any
) -> None:
    sets, new = drawn
    graph = reveals(sets, new)
    pages = list(range(len(sets)))
    random.shuffle(pages)
    cover = np.array(pages, np.int64)
    found = measures.trace(graph, cover).found.tolist()
    assert found == [int(graph.covered(cover[:k]).sum()) for k in range(len(pages) + 1)]


@given(graphs(), st.integers(1, 5))
def test_without_orphans_all_else_is_the_same(drawn: tuple[Sets, int], budget: int) -> None:
    sets, new = drawn
    graph = reveals(sets, new)
    kept = measures.without_orphans(graph)
    assert kept.orphans == 0
    assert kept.new == graph.new - graph.orphans
    assert kept.degrees.tolist() == graph.degrees.tolist()
    knowing = measures.trace(kept, greedy(kept, budget=budget)).found[-1]
    first = np.arange(min(budget, graph.old))
    assert knowing >= (1 - 1 / e) * int(graph.covered(first).sum())


@given(graphs())
def test_overlaps_count_every_pair_once(drawn: tuple[Sets, int]) -> None:
    sets, new = drawn
    some = [each for each in sets if each]
    pairs = [(a, b) for n, a in enumerate(some) for b in some[:n]]
    wanted = np.zeros(4)
    for one, other in pairs:
        wanted[min(int(4 * len(one & other) / len(one | other)), 3)] += 1
    shares = measures.overlaps([reveals(sets, new)], 4)
    assert shares == pytest.approx(wanted / max(len(pairs), 1))


def test_one_cover_of_everything_ends_with_all_pages(sites: list[list[Reveals]]) -> None:
    knowing = [t for site in sites for t in measures.optimal(site)]
    coverage, overhead = measures.everywhere(knowing)
    assert coverage[-1] == pytest.approx(1.0)
    assert (np.diff(overhead) >= -1e-12).all()
    assert overhead[-1] == pytest.approx(measures.row(knowing).overall)


def test_a_bandit_that_is_told_begins_with_what_a_full_recrawl_shows() -> None:
    week = reveals([frozenset()] * 20 + [frozenset(range(4))], 4)
    site = [week] * (FIRST + 2)
    told = list(measures.bandit(site, 1, is_told=True))
    assert [each.found[-1] for each in told] == [4, 4]
    assert sum(each.found[-1] for each in measures.bandit(site, 1)) == 0


def test_the_bandit_finds_the_pages_that_reveal_most() -> None:
    random = np.random.default_rng(1)
    shares = np.array([0.5, 0.3] + [0.01] * 28)
    bandit, pulls = Bandit(), np.zeros(30)
    for _ in range(300):
        arms = bandit.choose(30, 3)
        assert len(set(arms.tolist())) == 3
        new = random.random((30, 20)) < shares[:, None]
        bandit.learn({int(arm): np.flatnonzero(new[arm]) for arm in arms})
        pulls[arms] += 1
    assert set(np.argsort(-pulls)[:2].tolist()) == {0, 1}
    assert pulls[:2].min() > 200
    assert pulls.min() >= 1


def test_arms_that_pay_nothing_do_not_bury_one_that_pays() -> None:
    """Of 500 pages one reveals a third of what is new; 10 are visited in a step."""
    bandit, pulls = Bandit(), np.zeros(500)
    for _ in range(100):
        arms = bandit.choose(500, 10)
        bandit.learn({int(arm): np.arange(3 if arm == 250 else 0) for arm in arms})
        pulls[arms] += 1
    assert pulls[250] > 50
    assert pulls.min() >= 1


def test_pages_that_are_new_to_the_bandit_are_tried() -> None:
    bandit = Bandit()
    for _ in range(20):
        bandit.learn({0: np.arange(1), 1: np.arange(0)})
    assert 5 in bandit.choose(6, 5).tolist()


def recording(path: Path) -> sqlite3.Connection:
    """Three weeks: an index, a page that lasts, one that is gone before anybody looks."""
    connection = sqlite3.connect(path)
    connection.executescript(f"""
        CREATE TABLE meta(key TEXT, value TEXT);
        CREATE TABLE pages(id INT, kind TEXT, first_seen INT, last_seen INT);
        CREATE TABLE links(src INT, dst INT, t0 INT, t1 INT);
        INSERT INTO meta VALUES ('t_start', '1000'), ('t_end', '{1000 + 3 * WEEK_S}');
        INSERT INTO pages VALUES (7, 'html', {1000 + WEEK_S + 5}, NULL), (3, 'html', 1000, NULL),
            (5, 'html', {1000 + 5}, {1000 + 9}), (9, 'aux', 1000, NULL);
        INSERT INTO links VALUES (3, 7, {1000 + WEEK_S + 5}, NULL), (3, 5, 1005, 1009),
            (3, 9, 1000, NULL), (7, 7, {1000 + WEEK_S + 5}, NULL);
    """)
    return connection


def test_a_recording_is_what_weekly_crawls_would_have_seen(tmp_path: Path) -> None:
    connection = recording(tmp_path / "site.sqlite")
    history, _ = snapshots(course("site", connection))
    connection.close()
    assert history.steps == 4
    assert history.born.tolist() == [0, 2]
    assert (history.source.tolist(), history.target.tolist()) == ([0], [1])
    assert [week.new for week in history.recrawls()] == [0, 1, 0]
    assert history.recrawls()[1].of(0).tolist() == [0]


def test_recordings_are_read_from_a_directory(tmp_path: Path) -> None:
    recording(tmp_path / "one.sqlite").close()
    packed = zstandard.ZstdCompressor().compress((tmp_path / "one.sqlite").read_bytes())
    (tmp_path / "one.sqlite.zst").write_bytes(packed)
    assert [each.name for each in recorded(tmp_path)] == ["one"]
