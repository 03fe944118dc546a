"""Figures 6.3 to 6.6 of Pandey's thesis, chapter 6: advertisements with budgets as bandits.

The thesis' data (Yahoo!'s phrases, bids, budgets and click probabilities) are not to be had and its
curves have no printed values: its statements are tried on synthetic markets. All policies see the
same queries and coins of clicks; earnings are shares of a linear programme's bound, which no policy
exceeds on average. N counts since the beginning where nothing else is said, and ties go to the
larger bid. Prints tables, writes figures as PNG and all numbers as CSV.
"""

from __future__ import annotations

import argparse
import csv
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from freshet.crawler.run.terminal import Cell, show_line, show_list
from freshet.scheduler.arrays import Floats
from scripts.benchmarks.command import say
from scripts.reproductions import bandit_policies as bandits
from scripts.reproductions import bandits_drawing as drawing
from scripts.reproductions.bandit_policies import BanditPolicy
from scripts.reproductions.bandits_market import (
    Contender,
    Days,
    Market,
    bound,
    given_priors,
    market,
)

Shares: TypeAlias = dict[tuple[str, tuple[float, ...], str], float]
Entry: TypeAlias = Callable[..., Contender]

#: α + β of a prior that no click moves: the click probability is known.
_CERTAIN = 1e12
_FURTHER_MARKETS = 3
_PRIORS = [(p, v) for p in (0.1, 0.25, 0.5, 0.75, 1.0) for v in (0.9, 0.95, 0.98, 0.999)]
_WORDS = """
Figure 6.3 has all of the thesis' policies better than GREEDY: BMIX-E is, BMIX is not. In ten days \
√(2 ln N / n) explores far too much.
Throttling costs some 3 % where queries come in random order: it is made for the worst order.
GREEDY depends on ties: if those of ĉ = 0 are broken at random it earns more than a tenth less.
What gains most is a prior learnt from all advertisements, which the thesis does not have.
"""


def kept(policy: BanditPolicy) -> BanditPolicy:
    """Return the policy with N since the beginning."""
    return replace(policy, daily=False)


def epsilon_greedy(
    mean: Floats, _n: Floats, _log: Floats, generator: np.random.Generator
) -> Floats:
    """Return the index ĉ, which for 5 % of the queries is one at random."""
    random = generator.random(mean.shape)
    return np.where(generator.random((len(random), 1)) < 0.05, random, mean)


THESIS = {
    "GREEDY": kept(bandits.GREEDY),
    "BMIX": kept(bandits.BMIX),
    "BMIX-T": kept(bandits.BMIX_T),
    "BMIX-E": kept(bandits.BMIX_E),
    "BMIX-ET": kept(bandits.BMIX_ET),
}


def contenders(of: Market, *, further: bool) -> list[Contender]:
    """Return who plays a default market; those of one index are neighbours, for speed."""
    known = np.stack((of.clicks, np.ones(len(of.bids)))) * _CERTAIN
    found = [
        *(Contender(name, policy) for name, policy in THESIS.items()),
        Contender("known c", THESIS["GREEDY"], known),
        Contender("GREEDY, random ties", replace(THESIS["GREEDY"], random_ties=True)),
        Contender("BMIX, N of the day", bandits.BMIX),
        Contender("BMIX-E, N of the day", bandits.BMIX_E),
    ]
    if further:
        kl, mix = kept(bandits.KL_UCB), kept(bandits.BPOL_MIX)
        uniform, unknown = np.array([[1.0], [2.0]]), np.array([[0.5], [10.0]])
        found += [
            Contender("MIX", kept(bandits.MIX)),
            Contender("BPOL(MIX), forgets", mix),
            Contender("BPOL(MIX), keeps", replace(mix, restart="keep")),
            Contender("BMIX-E, learnt prior", THESIS["BMIX-E"], unknown, learns_prior=True),
            Contender("random", bandits.RANDOM),
            Contender("ε-greedy 5 %", BanditPolicy(epsilon_greedy, daily=False)),
            Contender("KL-UCB", kl),
            Contender("KL-UCB, learnt prior", kl, unknown, learns_prior=True),
            Contender("Thompson", bandits.THOMPSON, uniform),
            Contender("Thompson, learnt prior", bandits.THOMPSON, unknown, learns_prior=True),
        ]
    return sorted(found, key=lambda each: each.policy.index.__name__)


def default_market(size: tuple[int, int, int], days: int, seed: int) -> Shares:
    """Play one of figure 6.3's markets, by its number and the day."""
    of = market(*size, seed=seed)
    playing = contenders(of, further=seed <= _FURTHER_MARKETS)
    say(f"market {seed}: {len(of.bids):,} advertisements, {len(playing)} policies")
    shares = Days(of, playing, seed).earned(days) / bound(of)
    return {
        ("market", (float(seed), float(day)), contender.name): float(share)
        for day, row in enumerate(shares, 1)
        for contender, share in zip(playing, row, strict=True)
    }


def small_market(size: tuple[int, int, int], days: int, seed: int) -> Shares:
    """Vary one thing at a time in a small market, for three policies side by side.

    Of the days with lives, 3.6 times as many, the second half counts.
    """
    of, found = market(*size, seed=seed), Shares()

    def play(what: str, of: Market, values: Iterable[tuple[float, ...]], entry: Entry) -> None:
        say(f"small market: {what}")
        playing = {(n, v): entry(THESIS[n], *v) for n in drawing.THREE for v in values}
        first, last = (18 * days // 10, 36 * days // 10) if what == "life" else (0, days)
        means = Days(of, [*playing.values()], seed).earned(last)[first:].mean(axis=0)
        for (key, contender), mean in zip(playing.items(), means.tolist(), strict=True):
            found[what, key[1], key[0]] = mean / bound(contender.market or of)

    places = [(float(count),) for count in (1, 2, 4, 6)]
    play("C", of, places, lambda p, count: Contender("", replace(p, count=int(count))))
    found |= {("C", each, "bound"): bound(of, int(each[0])) / bound(of) for each in places}
    priors = {each: given_priors(of.clicks, *each, seed=seed) for each in _PRIORS}
    play("prior", of, priors, lambda p, *prior: Contender("", p, priors[prior]))
    lives = [(1.0,), (3.0,), (10.0,), (30.0,)]
    play("life", of, lives, lambda p, life: Contender("", p, life=life))
    markets = {mean: of.with_clicks(mean, seed) for mean in (0.01, 0.02, 0.04, 0.1, 0.2)}
    play("CTR", of, [(m,) for m in markets], lambda p, m: Contender("", p, market=markets[m]))
    for queries in (5, 23.5, 100):
        other = market(size[0], round(size[1] * queries / 23.5), size[2], seed=seed)
        play("queries", other, [(queries,)], lambda p, _: Contender("", p))
    return found


def share(shares: Shares, name: str, setting: str) -> float:
    """Return the mean share of a policy in a setting such as "C 2", "day 1" or "" (all days)."""
    what, *words = setting.replace("day", "market").split() or ["market"]
    wanted = what, tuple(map(float, words)), name
    return float(
        np.mean(
            [v for (w, at, n), v in shares.items() if (w, at[len(at) - len(words) :], n) == wanted]
        )
    )


def show(shares: Shares, title: str) -> None:
    """Print shares, and ratios of them, beside those expected."""
    text = Path(__file__).with_name("bandits_expected.toml").read_text("utf-8")
    rows: list[Sequence[Cell]] = []
    for what, (expected, tolerance) in tomllib.loads(text)[title].items():
        names, _, setting = what.partition(" @ ")
        over, *under = (share(shares, name, setting) for name in names.split(" / "))
        ours = over / under[0] if under else over
        met = "yes" if abs(ours - expected) < tolerance + 5e-4 else f"no, {ours - expected:+.3f}"
        rows.append((what, f"{ours:.3f}", f"{expected:.3f}", f"± {tolerance:.3f}", met))
    show_list(title, ("share of the bound", "ours", "expected", "tolerance", "met"), rows)


def write(folder: Path, shares: Shares) -> None:
    """Write all numbers."""
    with (folder / "bandits.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("varied", "value", "policy", "share"))
        for (what, value, name), each in shares.items():
            writer.writerow((what, " ".join(f"{part:g}" for part in value), name, each))


def options() -> argparse.Namespace:
    """Return what the user asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("reproduction"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="markets of a twentieth")
    parser.add_argument("--thesis-size", action="store_true", help="only one such market: hours")
    given = parser.parse_args()
    try:
        given.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output {given.output}: {error.strerror}")
    return given


def main() -> None:
    """Play, print, draw."""
    given = options()
    part, markets = (20, [1, 4]) if given.quick else (1, [1, 2, 3, 4, 5])
    title, size = "Default markets", (8_500 // part, 200_000 // part, 3_000 // part)
    if given.thesis_size:
        title, size, markets = "One market of the thesis' size", (85_000, 2_000_000, 20_000), [1]
    shares = Shares()
    for seed in markets:
        shares |= default_market(size, 10, seed)
        write(given.output, shares)
    show(shares, title)
    if given.thesis_size:
        return
    shares |= small_market((4_000 // part, 94_000 // part, 1_500 // part), 10, 1)
    write(given.output, shares)
    show(shares, "Small market")
    if given.quick:
        show_line("These markets are a twentieth; what is expected is of whole ones.", "dim")
    for sentence in _WORDS.strip().splitlines():
        show_line(f"- {sentence}")
    for number, draw in enumerate(drawing.FIGURES, 3):
        draw(given.output / f"bandits_6_{number}.png", shares)
    show_line(f"Figures and numbers are in {given.output}/")
