"""What claims have told of a site's pages, as arrays that compiled functions write into."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats
from freshet.scheduler.recrawl.change_posterior import POINTS, RATES
from freshet.scheduler.sources import Rows

#: Claims on a page that stand until the next look; of more the oldest are forgotten.
STANDING: Final = 12
#: Sources whose pages are told apart.
SOURCES: Final = 63
#: Events by how much of the site is in them.
SIZES: Final = 5
#: Looks at pages with claims before the prior is fitted for the first time.
FIRST_FIT: Final = 32
_EVENTS: Final = 256
_MOST_EVENTS: Final = 65_536
#: Of the logarithm of a weight.
_SPREAD: Final = 1.5
_ROOM: Final = 16
_FIRST_SHARE: Final = 2.0
PAGE: Final = np.dtype(
    [
        ("row", np.int64),
        # Which sources (bits, by their places, 63 at most) have claimed something of the page.
        ("by", np.int64),
        # Since when something is claimed of the page, and how often that moved.
        ("since", np.float64),
        ("moves", np.int64),
        # κ: expected changes by unit of an event's share.
        ("weight", np.float64),
        ("standing", np.int64),
        # The look before, taken in for good at the next one, when its events have settled.
        ("past", np.int64),
        ("past_days", np.float64),
        ("past_other", np.float64),
        ("past_changed", np.bool_),
        # A look that found what nothing had claimed, until the sources have been asked again.
        ("held", np.bool_),
        ("changed", np.bool_),
        ("begin", np.float64),
        ("at", np.float64),
        ("hazard", np.float64),
    ],
    align=True,
)
#: A claim as it is heard: of the page in a slot, last looked at on a day, −inf: never.
CLAIM: Final = np.dtype(
    [
        ("slot", np.int64),
        ("until", np.float64),
        ("last", np.float64),
        # Of the event that it belongs to, within the hearing.
        ("number", np.int64),
    ],
    align=True,
)
EVENT: Final = np.dtype(
    [
        ("source", np.int64),
        ("size", np.int64),
        ("at", np.float64),
        # Changes found that are put down to it, the weights of the pages looked at, and its share.
        ("found", np.float64),
        ("exposed", np.float64),
        ("share", np.float64),
    ],
    align=True,
)
SOURCE: Final = np.dtype(
    [
        ("number", np.int64),
        ("asked", np.int64),
        ("heard", np.float64),
        ("claims", np.int64),
        # Days listened to lately, and what it told in these.
        ("days", np.float64),
        ("told", np.float64),
        # Looks lately at pages of which it claimed a change, and the changes found at these.
        ("looked", np.float64),
        ("found", np.float64),
        # Changes found lately at any of its pages, and those that it had claimed.
        ("changes", np.float64),
        ("claimed", np.float64),
        # Days lately from changes to the hearings of them, and how many hearings these were.
        ("late", np.float64),
        ("timed", np.float64),
    ],
    align=True,
)
FACTS: Final = np.dtype(
    [
        ("pages", np.int64),
        ("sources", np.int64),
        ("events", np.int64),
        ("looks", np.int64),
        ("fit_at", np.int64),
        # Decayed log losses: by what was claimed, and without.
        ("loss", np.float64),
        ("loss_without", np.float64),
        # Looks that nothing claimed: changes found, and how many were expected without claims.
        ("unclaimed", np.float64),
        ("expected", np.float64),
        # The mean share of events over their claims.
        ("share_sum", np.float64),
        ("shares", np.float64),
        # The mean weight of pages that were looked at, over looks.
        ("weight_sum", np.float64),
        ("weights", np.float64),
        # Whether a page has changed of which the sources had said nothing when last asked.
        ("news", np.bool_),
    ],
    align=True,
)


class Told(NamedTuple):
    """What is known of a site by claims.

    ``page`` (n,), ``standing`` and ``past`` (n, 12), numbers of events, and ``likelihood`` (n, 48)
    have a row for each page of which something was claimed; ``event`` is a ring; ``share`` is
    (sources, 5, 2): changes found and weights exposed of events of each size.
    """

    facts: NDArray[np.void]
    page: NDArray[np.void]
    standing: Rows
    past: Rows
    likelihood: NDArray[np.float32]
    event: NDArray[np.void]
    source: NDArray[np.void]
    share: Floats
    prior: Floats
    parent: Floats


def first_prior() -> Floats:
    """The prior of weights of which nothing is known: around 1, as likely twice as half of it."""
    prior = np.exp(-((np.log(RATES) / _SPREAD) ** 2) / 2)
    return np.asarray(prior / prior.sum())


def nothing_told() -> Told:
    """A site of which nothing was ever claimed."""
    facts = np.zeros(1, FACTS)
    facts["fit_at"] = FIRST_FIT
    # Half of the changes are taken to be claimed, until it shows.
    facts["unclaimed"], facts["expected"] = 0.5, 1.0
    facts["share_sum"], facts["shares"] = 1.0, _FIRST_SHARE
    facts["weight_sum"], facts["weights"] = 1.0, 1.0
    return Told(
        facts, np.zeros(0, PAGE),
        np.zeros((0, STANDING), np.intp), np.zeros((0, STANDING), np.intp),
        np.zeros((0, POINTS), np.float32), np.zeros(_EVENTS, EVENT), np.zeros(0, SOURCE),
        np.full((0, SIZES, 2), _FIRST_SHARE), first_prior(), first_prior(),
    )  # fmt: skip


def with_pages(told: Told, count: int) -> Told:
    """The same with room for so many more pages."""
    wanted = int(told.facts[0]["pages"]) + count
    if wanted <= len(told.page):
        return told
    more = max(wanted, 2 * len(told.page), _ROOM) - len(told.page)
    return told._replace(
        page=np.concatenate([told.page, np.zeros(more, PAGE)]),
        standing=np.concatenate([told.standing, np.zeros((more, STANDING), np.intp)]),
        past=np.concatenate([told.past, np.zeros((more, STANDING), np.intp)]),
        likelihood=np.concatenate([told.likelihood, np.zeros((more, POINTS), np.float32)]),
    )


def with_source(told: Told, number: int, asked: int, at: float) -> Told:
    """The same with another source, heard of on this day."""
    source = np.zeros(1, SOURCE)
    source["number"], source["asked"], source["heard"] = number, asked, at
    source["days"], source["told"] = 1.0, 0.5
    told.facts["sources"] += 1
    return told._replace(
        source=np.concatenate([told.source, source]),
        share=np.concatenate([told.share, np.full((1, SIZES, 2), _FIRST_SHARE)]),
    )


def with_events(told: Told, count: int, needed: float) -> Told:
    """The same with a ring in which so many events write over none of after day ``needed``."""
    length, after = len(told.event), int(told.facts[0]["events"])
    longer = length
    while longer < count:
        longer *= 2
    lost = np.arange(max(0, after - length), max(0, after - length + count)) % length
    if after > length - count and (told.event["at"][lost] > needed).any():
        longer = max(longer, min(2 * length, _MOST_EVENTS))
    if longer == length:
        return told
    event = np.zeros(longer, EVENT)
    numbers = np.arange(max(0, after - length), after)
    event[numbers % longer] = told.event[numbers % length]
    return told._replace(event=event)
