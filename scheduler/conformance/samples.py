"""The tables for testing policies: small, so that a counter-example is readable."""

from dataclasses import fields, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from freshet.scheduler.arrays import Floats
from freshet.scheduler.sources import SourceTable

#: Sources in a table: few enough to read, enough for three hosts and two classes.
_N = 12

#: A table for a rate policy: its name, the table, and the budget in crawls per day.
RateSample: TypeAlias = tuple[str, SourceTable, float]
#: A table for an index policy, valued on day :data:`NOW`, with its name.
IndexSample: TypeAlias = tuple[str, SourceTable]
NOW: Final = 100.0


def planned(seed: int) -> list[RateSample]:
    """Return tables of ordinary magnitudes, for laws that compare numbers closely."""
    rng = np.random.default_rng(seed)
    some = np.arange(_N) % 3 == 0
    hosts = np.arange(_N) % 3
    only_complete = _sources(rng, complete_observations=np.ones(_N, np.bool_))
    return [
        ("one source", _sources(rng, 1), 0.4),
        ("twelve sources", _sources(rng), 2.4),
        ("twelve sources, a large budget", _sources(rng), 500.0),
        ("both classes", _sources(rng, complete_observations=some), 2.4),
        ("complete observations only", only_complete, 0.3 * _total(only_complete)),
        ("more budget than signals", only_complete, 2 * _total(only_complete)),
        (
            "three hosts, one slow",
            _sources(rng, complete_observations=some, host=hosts, host_capacity=[0.1, 50, np.inf]),
            2.4,
        ),
        ("three slow hosts", _sources(rng, host=hosts, host_capacity=[0.1, 0.2, 0.5]), 2.4),
        ("some without importance or changes", _with_zeros(_sources(rng)), 2.4),
        ("the same of both classes", _with_zeros(_sources(rng, complete_observations=some)), 2.4),
    ]


def extreme(seed: int) -> list[RateSample]:
    """Return tables without sources, importance or changes, and with magnitudes 1e-12 to 1e12."""
    rng = np.random.default_rng(seed)
    nothing = np.zeros(_N)
    complete = np.arange(_N) % 3 == 0
    wide = SourceTable.of(_wide(rng), _wide(rng), complete_observations=complete)
    tiny = SourceTable.of(_wide(rng), np.full(_N, 1e-12))
    return [
        ("no source", _sources(rng, 0), 1.0),
        ("no importance", replace(_sources(rng), importance=nothing), 1.0),
        ("no changes", replace(_sources(rng), change_rate=nothing), 1.0),
        ("magnitudes 1e-12 to 1e12, budget 1e-9", wide, 1e-9),
        ("magnitudes 1e-12 to 1e12, budget 1", wide, 1.0),
        ("magnitudes 1e-12 to 1e12, budget 1e9", wide, 1e9),
        ("change rates of 1e-12", tiny, 1.0),
    ]


def watched(seed: int) -> list[IndexSample]:
    """Return tables with ages and signals; days are whole 64ths, so that differences are exact."""
    rng = np.random.default_rng(seed)
    complete = np.arange(_N) % 3 == 0
    pending = rng.integers(0, 5, _N)
    signalled = _sources(rng, complete_observations=complete, last_crawl=_days(rng))
    both = replace(signalled, pending_signals=np.where(complete, pending, 0))
    noisy = _sources(
        rng,
        last_crawl=_days(rng),
        signal_rate=rng.uniform(0, 0.03, _N),
        signal_precision=rng.uniform(0, 1, _N),
        pending_signals=pending,
    )
    wide = SourceTable.of(
        _wide(rng),
        _wide(rng),
        complete_observations=complete,
        last_crawl=NOW - 10.0 ** rng.uniform(-6, 9, _N),
        pending_signals=np.where(complete, rng.integers(0, 10**6, _N), 0),
    )
    return [
        ("no source", _sources(rng, 0)),
        ("one source", _sources(rng, 1)),
        ("twelve sources", _sources(rng, last_crawl=_days(rng))),
        ("both classes", both),
        ("noisy signals", noisy),
        ("some without importance or changes", _with_zeros(_sources(rng))),
        ("magnitudes 1e-12 to 1e12", wide),
    ]


def shown(table: SourceTable, row: int) -> str:
    """Describe a source in words."""
    kind = "complete" if table.complete_observations[row] else "incomplete"
    return (
        f"row {row} (importance {table.importance[row]:.6g}, "
        f"change rate {table.change_rate[row]:.6g}, {kind} observations)"
    )


def changed_column(before: SourceTable, after: SourceTable) -> str | None:
    """Return the name of the first column that has changed, or None."""
    for field in fields(before):
        if not np.array_equal(getattr(before, field.name), getattr(after, field.name)):
            return field.name
    return None


def _sources(rng: Generator, n: int = _N, **columns: ArrayLike) -> SourceTable:
    """Return sources with importances and change rates over two orders of magnitude each."""
    return SourceTable.of(rng.uniform(0.5, 50, n), 10 ** rng.uniform(-1.5, 0.7, n), **columns)


def _with_zeros(table: SourceTable) -> SourceTable:
    rows = np.arange(len(table))
    return SourceTable.of(
        np.where(rows % 4 == 1, 0.0, table.importance),
        np.where(rows % 4 == 3, 0.0, table.change_rate),
        complete_observations=table.complete_observations,
    )


def _wide(rng: Generator) -> Floats:
    return 10.0 ** rng.uniform(-12, 12, _N)


def _days(rng: Generator) -> Floats:
    return rng.integers(0, 6400, _N) / 64.0


def _total(table: SourceTable) -> float:
    return float(table.change_rate.sum())
