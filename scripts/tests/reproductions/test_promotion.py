"""The reproduction of chapter 5 of Pandey's thesis: model and simulator against other ways."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm, null_space
from scipy.stats import chisquare

from freshet.crawler.extensions.readers.promotion import selective_law, uniform_law
from freshet.scheduler.arrays import Floats
from scripts.reproductions import promotion, promotion_figures
from scripts.reproductions import promotion_model as model
from scripts.reproductions.promotion_live import Group, Study
from scripts.reproductions.promotion_model import Community, Rule, Solved, solve
from scripts.reproductions.promotion_simulator import Run, Visits, World, simulate

SMALL = Community(pages=400, users=400, visits=400.0, life=100.0)


def generator(rates: Floats, death: float) -> Floats:
    """Return the chain of a page's awareness: up by ``rates``, and down to 0 by its death."""
    chain = np.diag(rates[:-1], 1)
    chain[:, 0] += death
    return chain - np.diag(chain.sum(axis=1))


@pytest.fixture(scope="module")
def solved() -> Solved:
    return solve(SMALL, Rule(1, 0.2))


@pytest.mark.parametrize("seed", range(5))
def test_the_law_of_awareness_is_stationary_and_the_printed_one_is_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    visits, death = rng.exponential(size=11), 0.1
    rates = visits * (1 - np.arange(11) / 10)
    stationary = null_space(generator(rates, death).T)[:, 0]
    law = model.awareness(rates, death)
    assert law == pytest.approx(stationary / stationary.sum(), rel=1e-9)
    printed = model.printed_awareness(visits, death)
    assert printed[0] == pytest.approx(law[0])
    assert (printed[1:] > law[1:-1]).all()
    assert printed.sum() > 1.01


def test_the_time_to_become_popular_is_that_of_linear_equations(solved: Solved) -> None:
    goal = model.goal(SMALL.monitored)
    assert goal == 40
    chain = generator(solved.rates(), 0.0)[:goal, :goal]
    assert solved.days == pytest.approx(np.linalg.solve(-chain, np.ones(goal))[0])
    assert model.goal(100) == 100
    assert model.goal(1000) == 991


def test_popularity_over_time_is_that_of_the_matrix_exponential(solved: Solved) -> None:
    days = np.array([0.0, 3.0, 30.0])
    known = np.arange(SMALL.monitored + 1) / SMALL.monitored
    chain = generator(solved.rates(), 0.0)
    expected = [0.4 * expm(chain * day)[0] @ known for day in days]
    assert solved.popularity(days) == pytest.approx(expected, abs=1e-3)


def test_the_example_and_all_exact_values_agree() -> None:
    assert all(abs(value - expected) <= error for _, value, expected, error in promotion.exact())


@pytest.mark.parametrize("rule", [Rule(), Rule(2, 0.3), Rule(1, 0.2, uniform=True)])
def test_all_visits_are_given_away_and_births_replace_what_is_seen(rule: Rule) -> None:
    found = solve(SMALL, rule)
    assert found.rounds < 150
    assert found.total == pytest.approx(SMALL.looks, rel=0.02)
    assert found.law.sum(axis=1) == pytest.approx(1)
    births, deaths = SMALL.pages / SMALL.life, found.pool / SMALL.life
    assert births == pytest.approx(deaths + found.pool * found.visits[0, 0], rel=1e-6)


@pytest.mark.parametrize(("k", "r"), [(1, 0.3), (3, 0.6), (2, 1.0)])
def test_the_visits_of_a_rank_are_those_of_the_law_of_each_place(k: int, r: float) -> None:
    """Sum the law of places over the places, for the pool and for each natural rank."""
    ranked, pool = 16, 4
    community = Community(pages=ranked + pool, users=10)
    laws = np.array(
        [selective_law(i, ranked=ranked, pool=pool, k=k, r=r) for i in range(1, ranked + pool + 1)]
    )
    visits = community.attention @ laws
    ranks = model.Places(community, Rule(k, r)).by_rank(pool)[: ranked - 4]
    assert ranks == pytest.approx(visits[: ranked - 4], rel=0.02)
    assert model.unseen(community, Rule(k, r), pool) == pytest.approx(visits[-1] / pool, rel=0.03)


def test_without_promotion_the_unseen_pages_share_the_last_places() -> None:
    community = Community(pages=20, users=10)
    assert model.unseen(community, Rule(), 5) == pytest.approx(community.attention[-5:].mean())
    older = model.unseen(community, Rule(older_first=True), 5)
    assert older == pytest.approx(community.attention[15])


def test_the_pages_above_are_counted_with_their_variance() -> None:
    """Count by brute force over the atoms of all classes."""
    rng = np.random.default_rng(3)
    law = rng.dirichlet(np.ones(4), 3)
    weight, quality = np.array([1.0, 1.0, 5.0]), np.array([0.4, 0.3, 0.11])
    popularity = np.arange(4) / 3 * quality[:, None]
    order = np.argsort(-popularity[:, 1:], axis=None)
    above, variance, own = model._above(law, weight, order)
    for i, atom in enumerate(order):
        x = popularity[:, 1:].flat[atom]
        chance = np.where(popularity > x + 1e-12, law, 0).sum(axis=1)
        assert above[i] == pytest.approx(weight @ chance)
        assert variance[i] == pytest.approx(weight @ (chance * (1 - chance)))
        assert own[i] == pytest.approx(chance[atom // 3])


def world(rule: Rule, aware: int, pages: int) -> World:
    """Return a community in which the first pages have popularity, in order."""
    found = World(Community(pages=pages, users=50), rule, Run(1, 5))
    found.aware[:aware] = 1
    found.order, found.unaware = np.arange(aware), np.arange(aware, pages)
    found.key = -0.2 * found.quality[:aware]
    return found


def seen(of: World, steps: int) -> Counter[int]:
    """Return how often each page is visited in a state that stays."""
    visits = (of.visited(each) for each, _ in zip(of.visits, range(steps), strict=False))
    return Counter(np.concatenate([*visits]).tolist())


@pytest.mark.parametrize("rule", [Rule(), Rule(1, 0.3), Rule(3, 0.6), Rule(9, 0.5), Rule(2, 1.0)])
def test_visits_are_to_the_law_of_places(rule: Rule) -> None:
    of = world(rule, 6, 10)
    laws = [selective_law(i, ranked=6, pool=4, k=rule.k, r=rule.r) for i in range(1, 11)]
    law = of.community.attention / of.community.looks @ np.array(laws)
    law = np.append(law[:6], np.full(4, law[6] / 4))
    drawn = seen(of, 300)
    assert chisquare([drawn[p] for p in range(10)], law * drawn.total()).pvalue > 1e-3


def test_the_older_of_pages_without_popularity_come_first() -> None:
    of = world(Rule(older_first=True), 6, 10)
    of.unaware = np.array([9, 6, 8, 7])
    drawn = seen(of, 300)
    law = of.community.attention / of.community.looks * drawn.total()
    found = [drawn[page] for page in (0, 1, 2, 3, 4, 5, 9, 6, 8, 7)]
    assert chisquare(found, law).pvalue > 1e-3


def test_visits_under_the_uniform_rule_are_to_its_law() -> None:
    """The end of a short list differs: there the simulator takes any page."""
    of = world(Rule(2, 0.2, uniform=True), 12, 12)
    laws = [uniform_law(place, items=12, k=2, r=0.2) for place in range(1, 13)]
    law = of.community.attention / of.community.looks @ np.array(laws)
    drawn = seen(of, 400)
    shares = np.array([drawn[p] for p in range(12)]) / drawn.total()
    assert shares == pytest.approx(law, abs=0.01)


def test_surfers_follow_popularity_or_go_anywhere() -> None:
    of = world(Rule(), 4, 10)
    of.run = Run(1, 5, surfing=0.5)
    pick = np.linspace(0, 1, 10_000, endpoint=False)
    ones = np.ones(len(pick), np.int64)
    for kind, law in ((1, np.append(of.key / of.key.sum(), np.zeros(6))), (2, np.full(10, 0.1))):
        visits = Visits(0 * ones, 0 * ones, ones < 0, 0 * ones, pick, kind * ones)
        shares = np.bincount(of.visited(visits), minlength=10) / len(pick)
        assert shares == pytest.approx(law, abs=1e-3)


def test_awareness_grows_as_if_one_user_came_after_the_other() -> None:
    """Three visits of random users of three, one of whom knows the page: by all 27 cases."""
    of = world(Rule(), 3, 4)
    law = Counter(len({0, *users}) for users in product(range(3), repeat=3))
    of.community = Community(pages=4, users=30)
    found: Counter[int] = Counter()
    for users in product(range(3), repeat=3):
        of.aware[:] = (1, 3, 0, 0)
        changed = of.learnt(np.array([0, 0, 0, 1]), np.array([*users, 2]))
        found[int(of.aware[0])] += 1
        assert of.aware[1] == 3
        assert set(changed) == ({0} if of.aware[0] > 1 else set())
    assert found == law


def test_the_order_is_by_popularity_and_has_each_page_once() -> None:
    of = World(SMALL, Rule(1, 0.2), Run(1, 7))
    for _ in range(20):
        of.advance(10)
        popularity = of.aware * of.quality
        assert sorted([*of.order, *of.unaware]) == [*range(SMALL.pages)]
        assert (np.diff(popularity[of.order]) <= 1e-15).all()
        assert of.key == pytest.approx(-popularity[of.order])
        assert not of.aware[of.unaware].any()


def test_simulator_and_model_agree_in_a_small_community() -> None:
    """Above the critical degree, 0.1, the model is some 5 % off, for its pool is a mean."""
    rule = Rule(1, 0.06)
    expected, found = solve(SMALL, rule), simulate(SMALL, rule, Run(3_000, 1))
    assert found.qpc == pytest.approx(expected.qpc, abs=0.05)
    assert found.absolute == pytest.approx(found.qpc * SMALL.best)
    assert found.pool == pytest.approx(expected.pool, rel=0.05)
    probed = simulate(SMALL, rule, Run(3_000, 1, probe=True)).popular
    error = np.std(probed) / len(probed) ** 0.5
    assert abs(np.mean(probed) - expected.days) < 3 * error


def test_rankings_within_a_day_change_little() -> None:
    found = [simulate(SMALL, Rule(1, 0.2), Run(2_000, 1, steps=steps)).qpc for steps in (1, 4)]
    assert found[0] == pytest.approx(found[1], abs=0.08)


def test_a_person_of_the_live_study_sees_unseen_items_from_place_21_on() -> None:
    group = Group(Study(5.0, items=60), promoted=True, rng=np.random.default_rng(2))
    group.viewed[:30] = True
    group.funny[:30] = np.arange(30)
    first, other = (group.items(np.full(60, p), np.arange(60)) for p in (3, 4))
    for shown in (first, other):
        assert sorted(shown) == [*range(60)]
        assert shown[:20].tolist() == [*range(29, 9, -1)]
        assert set(shown[20:50]) == set(range(30, 60))
        assert shown[50:].tolist() == [*range(9, -1, -1)]
    assert first.tolist() != other.tolist()
    group.promoted = False
    shown = group.items(np.zeros(60, np.int64), np.arange(60))
    assert (np.diff(group.birth[shown[30:]]) > 0).all()


def test_a_person_has_one_vote_an_item() -> None:
    group = Group(Study(400.0, items=5), promoted=False, rng=np.random.default_rng(2))
    votes = sum((group.views() for _ in range(200)), np.zeros(2, np.int64))
    assert votes[1] == group.voted.sum() <= group.voted.size
    assert votes[0] == group.funny.sum()
    group.end[:] = 9
    group.replace(9)
    assert not group.voted.any()
    assert not group.funny.any()


def test_one_command_prints_the_tables_and_writes_the_figures(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    solved: Solved,
) -> None:
    monkeypatch.setattr(sys, "argv", ["reproduce", "--quick", "--output", str(tmp_path)])
    effort = promotion.Effort(1, 4, 0.002, 0.0001, 1, 1)
    monkeypatch.setattr(promotion, "QUICK", effort)
    for module in (promotion, promotion_figures):
        monkeypatch.setattr(module, "solve", lambda *_: solved)
    promotion.main()
    numbers = [f"5_{n}" for n in range(2, 13)]
    names = {f"promotion_{n}.{kind}" for n in numbers for kind in ("png", "csv")}
    assert {path.name for path in tmp_path.iterdir()} == names
    shown = capsys.readouterr().out
    for words in ("Exact", "The model", "TBP", "5.11 0.4", "5.12, 15 views", "do not agree", "–"):
        assert words in shown
    with (tmp_path / "promotion_5_6.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["curve"] == "k = 2"]
    assert [float(row["r"]) for row in rows][:3] == [0, 0.1, 0.2]
