"""What our own archives say of the runs that wrote them, in the warcinfo of each file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from freshet.crawler.replaying.captures import ArchiveInfo
from freshet.crawler.replaying.messages import named
from freshet.storage.records import SeedLine


@dataclass(frozen=True, slots=True)
class Account:
    """A run: when it began (Unix seconds), whether it was a daemon's, and its site list."""

    began_at: float
    is_lasting: bool
    seeds: tuple[SeedLine, ...]


def accounts_of(infos: Iterable[ArchiveInfo]) -> list[Account]:
    """The runs in the order in which they began; none where others wrote the files.

    Of a run that wrote several files the last word on its seeds holds.
    """
    found = {}
    for info in infos:
        if (account := _account(info)) is not None:
            found[account.began_at] = account
    return [found[at] for at in sorted(found)]


def _account(info: ArchiveInfo) -> Account | None:
    """None where it is damaged or not ours: its exchanges are taken as anybody's."""
    fields = named(info.fields)
    try:
        run, seeds = json.loads(fields["freshet-run"]), json.loads(fields["freshet-seeds"])
        return Account(_moment(run["began"]), bool(run["lasting"]), tuple(map(_seed, seeds)))
    except (KeyError, TypeError, ValueError):
        return None


def _moment(value: Any) -> float:
    at = float(value)
    if not isfinite(at):
        raise ValueError("not a time")
    return at


def _seed(line: Any) -> SeedLine:
    # An archive of before half-lives does not say one.
    fallback, half_life = line["fallback_url"], line.get("half_life_hours")
    return SeedLine(
        str(line["text"]), str(line["url"]), None if fallback is None else str(fallback),
        float(line["importance"]), None if half_life is None else float(half_life),
    )  # fmt: skip
