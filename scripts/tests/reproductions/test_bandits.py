"""The reproduction of chapter 6 of Pandey's thesis, on tiny markets."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scripts.reproductions import bandit_policies as policies
from scripts.reproductions import bandits, bandits_market
from scripts.reproductions.bandits_market import (
    Contender,
    Days,
    Market,
    bound,
    given_priors,
    market,
)

SIZE = (60, 600, 30)


@pytest.fixture(scope="module")
def drawn() -> Market:
    return market(*SIZE, seed=1)


def test_one_command_prints_the_tables_and_writes_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["reproduce", "--output", str(tmp_path), "--quick"])
    monkeypatch.setattr(
        bandits,
        "market",
        lambda phrases, *_, seed: market(*(phrases // 20, phrases // 2, 9), seed=seed),
    )
    bandits.main()
    names = {"bandits.csv", *(f"bandits_6_{number}.png" for number in (3, 4, 5, 6))}
    assert {path.name for path in tmp_path.iterdir()} == names
    shown = capsys.readouterr().out
    for words in (
        "Default markets",
        "BMIX-E / GREEDY @ queries 23.5",
        "Small market",
        "a twentieth;",
    ):
        assert words in shown
    with (tmp_path / "bandits.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["varied"] for row in rows} == {"market", "C", "prior", "life", "CTR", "queries"}
    assert all(0 < float(row["share"]) < 3 for row in rows)


def test_a_market_is_of_the_laws_that_are_said(drawn: Market) -> None:
    of = market(2_000, 40_000, 300, seed=3)
    assert np.diff([each.start for each in of.ads]).mean() == pytest.approx(8.5, rel=0.05)
    assert of.queries.sum() == 40_000
    assert np.median(of.bids) == pytest.approx(0.4, rel=0.03)
    assert of.clicks.mean() == pytest.approx(0.04, rel=0.03)
    assert np.isfinite(of.budgets).mean() == pytest.approx(0.6, abs=0.07)
    for ads in drawn.ads:
        assert (np.diff(drawn.bids[ads]) <= 0).all()
    largest = np.zeros(len(drawn.budgets))
    np.maximum.at(largest, drawn.advertiser, drawn.bids)
    assert (drawn.budgets >= largest).all()


def test_priors_have_the_mean_and_the_variance_of_the_thesis() -> None:
    clicks = np.full(20_000, 0.2)
    successes, plays = given_priors(clicks, 0.5, 0.95, seed=1)
    has = plays > 0
    assert has.mean() == pytest.approx(0.5, abs=0.02)
    mean = successes[has] / plays[has]
    assert mean.mean() == pytest.approx(0.2, abs=0.005)
    assert mean.var() == pytest.approx(0.2 * 0.05, rel=0.05)
    assert plays[has] == pytest.approx((0.95 - mean) / 0.05)
    assert not given_priors(np.full(9, 0.95), 1.0, 0.95, seed=1).any()


def test_what_one_earns_does_not_depend_on_who_else_plays(drawn: Market) -> None:
    greedy = Contender("GREEDY", bandits.THESIS["GREEDY"])
    other = drawn.with_clicks(0.2, 1)
    with_others = [Contender("random", policies.RANDOM), replace(greedy, market=other), greedy]
    alone = Days(drawn, [greedy], 5).earned(2)[:, 0]
    assert Days(drawn, with_others, 5).earned(2)[:, 2] == pytest.approx(alone)


def test_who_knows_c_earns_nearly_the_bound_and_more_than_who_learns(drawn: Market) -> None:
    playing = bandits.contenders(drawn, further=True)
    earned = Days(drawn, playing, 1).earned(10).mean(axis=0) / bound(drawn)
    shares = {each.name: share for each, share in zip(playing, earned, strict=True)}
    known = shares.pop("known c")
    assert 0.8 < known < 1.15
    assert max(shares.values()) < known
    assert min(shares, key=lambda name: shares[name]) == "random"


def test_a_learnt_prior_is_the_law_of_the_market(
    drawn: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandits_market, "_AGAIN", frozenset({300}))
    unknown = np.array([[0.5], [10.0]])
    learner = Contender("learns", policies.BMIX_E, unknown, learns_prior=True)
    days = Days(drawn.with_clicks(0.3, 2), [learner], 1)
    days.earned(12)
    successes, plays = days._arms[0].prior[:, 0, 0]
    assert successes / plays == pytest.approx(0.3, abs=0.06)


def test_advertisements_are_replaced_by_their_lives(drawn: Market) -> None:
    """Count what is known after the last night: of lives of a day some live for two."""
    lasting, daily = (Contender("", bandits.THESIS["GREEDY"], life=life) for life in (np.inf, 1.0))
    days = Days(drawn, [lasting, daily], 1)
    days.earned(4)
    known, mostly_new = np.concatenate([each.plays for each in days._arms], axis=1).sum(axis=1)
    assert known == 2_400
    assert 0 < mostly_new < 900
