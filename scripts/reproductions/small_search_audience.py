"""A community whose likes are seen, and a household that searches for some weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from freshet.crawler.extensions.readers.appeal import Appeal, Attention, BetaPrior, kl_upper_bound
from freshet.crawler.extensions.readers.promotion import first_places
from freshet.scheduler.arrays import Bools, Floats, Ints

#: Ways to rank 3,000 pages of which the likes are seen, and the earlier study's values.
COMMUNITY: Mapping[str, str] = {
    "likes": "0.39",
    "likes + sel 1 0.2": "0.41-0.45",
    "posterior mean": "0.28",
    "Thompson": "0.36",
    "KL-UCB": "0.34",
    "KL-UCB, prior of the mean visit": "",
}


def community(
    rule: str, *, runs: int, days: int, counted_from: int, seed: int, pages: int = 3000
) -> Floats:
    """Return (runs,) the quality per visit, as a share of that of an order by quality.

    The community of chapter 5 with fewer pages: quality 0.4 i^(-2/3), 100 visits a day at place i
    by i^(-3/2), lives of 547.5 days; each visit is a like with the page's quality. The prior is a
    beta law that is fitted to the pages every 30 days, or 4 visits with the share of visits that
    are likes, to which the best pages contribute most. The order is made each day.
    """
    rng = np.random.default_rng(seed)
    quality = 0.4 * np.arange(1, pages + 1) ** (-2 / 3)
    attention = np.arange(1, pages + 1) ** -1.5
    attention /= attention.sum()
    visits, likes = np.zeros((runs, pages)), np.zeros((runs, pages))
    run, earned = np.arange(runs)[:, None], np.zeros(runs)
    mean, strength = np.full((runs, 1), 0.5), np.full((runs, 1), 2.0)
    for day in range(days):
        if rule.endswith("visit"):
            mean[:], strength[:] = (likes.sum() + 1) / (visits.sum() + 2), 4.0
        elif day % 30 == 1 and not rule.startswith("likes"):
            laws = [BetaPrior.fitted(*each) for each in zip(likes, visits - likes, strict=True)]
            mean[:, 0], strength[:, 0] = np.transpose([(law.mean, law.strength) for law in laws])
        weight = strength + visits
        worth = likes if rule.startswith("likes") else (strength * mean + likes) / weight
        if rule == "Thompson":
            worth = rng.beta(weight * worth, weight * (1 - worth))
        elif rule.startswith("KL-UCB"):
            worth = kl_upper_bound(worth, 0.3 * np.log(100 * day + 1) / weight)
        order = np.argsort(-worth + 1e-9 * rng.random(worth.shape), axis=1)
        if "sel" in rule:
            order = np.array(
                [_promoted(*each, rng) for each in zip(order, visits == 0, strict=True)]
            )
        views = rng.multinomial(100, attention, size=runs)
        if day >= counted_from:
            earned += (attention * quality[order]).sum(axis=1)
        liked = rng.binomial(views, quality[order])
        visits[run, order] += views
        likes[run, order] += liked
        died = rng.random(visits.shape) < -np.expm1(-1 / 547.5)
        visits[died], likes[died] = 0, 0
    return np.asarray(earned / ((days - counted_from) * float(attention @ quality)))


def _promoted(order: Ints, pool: Bools, rng: np.random.Generator) -> Ints:
    """Return the whole order after the selective merge with k = 1, r = 0.2."""
    ranked, waiting = order[~pool[order]], rng.permutation(np.flatnonzero(pool))
    coin = np.flatnonzero(rng.random(len(order)) < 0.2)[: len(waiting)]
    place = np.setdiff1d(np.arange(len(order)), coin)
    merged = np.empty_like(order)
    merged[coin] = waiting[: len(coin)]
    merged[place] = np.concatenate([ranked, waiting[len(coin) :]])
    return merged


#: How a household's results are ordered.
HOUSEHOLD: Sequence[str] = ("relevance", "relevance × index", "that + sel 2 0.1", "oracle")


def household(
    rule: str, *, weeks: int, seed: int, searches: int = 5, pages: int = 2000, queries: int = 60
) -> Floats:
    """Return (weeks,) the expected opens per search of one household.

    2,000 pages of 40 sections of 4 sites, with appeals as in the small search; 60 queries, asked as
    often as 1/rank, have 30 hits each, whose scores are log-normal (σ 0.5, relative to the best).
    A page that is seen, place i with 1/i, is opened with appeal times score. The appeal is
    learnt each night.
    """
    world, rng = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    section = np.repeat(np.arange(40), pages // 40)
    mean = world.beta(0.8, 4.0, 40).clip(1e-6)[section]
    appeal = world.beta(4 * mean, 4 * (1 - mean))
    hits = np.array([world.choice(pages, 30, replace=False) for _ in range(queries)])
    score = world.lognormal(0, 0.5, hits.shape)
    score /= score.max(axis=1, keepdims=True)
    often = 1 / np.arange(1, queries + 1)
    asked = world.choice(queries, (weeks, 7, searches), p=often / often.sum())
    views, opens, index = np.zeros(pages), np.zeros(pages), np.ones(pages)
    place = np.arange(1, 11)
    attention, earned = Attention().of(place), np.zeros(weeks)
    for week, day, each in np.ndindex(asked.shape):
        query = asked[week, day, each]
        if each == 0 and rule.startswith(("relevance ×", "that")):
            lists = (week * 7 + day) * searches
            index = Appeal.learned(views, opens, section, section // 10, lists=lists).index
        worth = score[query] * (appeal if rule == "oracle" else index)[hits[query]]
        ranked = np.argsort(-worth, kind="stable")
        if "sel" in rule:
            pool = np.flatnonzero(views[hits[query]] < 1).tolist()
            number = (week * 7 + day) * searches + each
            found = first_places(ranked.tolist(), pool, 10, k=2, r=0.1, seed=seed + (number << 32))
            ranked = np.array([item for item, _ in found])
        shown = hits[query][ranked[:10]]
        chance = attention * appeal[shown] * score[query][ranked[:10]]
        earned[week] += chance.sum() / (7 * searches)
        opens[shown] += rng.random(10) < chance
        views[shown] += attention
    return earned
