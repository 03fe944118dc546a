"""Writes the figures and Parquet tables of a comparison of policies.

One folder holds the five tables. Their rows are a verdict (a policy with a budget); a verdict and a
day; a verdict and a bin of predicted probabilities; a page; a verdict and a page. Verdicts are
joined by ``policy`` and ``budget_per_day``, pages by ``url``. Times are Unix seconds, rates are
changes a day, and unknown values are NaN.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freshet.crawler.errors import CrawlError, needs_extra
from freshet.crawler.extensions.lab.charts import write_charts
from freshet.crawler.extensions.lab.counterfactual import StoreComparison
from freshet.crawler.extensions.lab.plan_sources import require_duckdb, write_parquet
from freshet.crawler.run.terminal import err, say
from freshet.scheduler.evaluate.verdicts import (
    BOUNDS,
    RAREST,
    RATE_CLASSES,
    BoundedCost,
    PolicyVerdict,
    class_of,
)
from freshet.storage.errors import trouble

Columns = dict[str, NDArray[Any]]

_DAY_S: Final = 86_400.0


def check_folders(plots: Path | None, parquet: Path | None) -> None:
    """Check before the work that figures and tables can be written there; write nothing.

    Raises:
        CrawlError: a folder is a file, its parent is not a folder, or an extra is missing.
    """
    if plots is not None and find_spec("matplotlib") is None:
        raise CrawlError(needs_extra(f"{plots}: drawing figures", "plots"))
    if parquet is not None:
        require_duckdb(parquet)
    for folder in (each for each in (plots, parquet) if each is not None):
        if folder.exists() and not folder.is_dir():
            raise CrawlError(f"{folder}: not a folder; name one")
        if not folder.absolute().parent.is_dir():
            raise CrawlError(
                f"{folder}: the folder does not exist: {folder.parent}; make it, or name another"
            )


def write_folders(answer: StoreComparison, plots: Path | None, parquet: Path | None) -> None:
    """Write figures and tables, each folder's files whole or not at all, and say so."""
    if plots is not None:
        with err.status("Drawing the figures"), _replacing_files(plots) as unfinished:
            names = write_charts(answer.comparison, unfinished)
        say("written:", "green", f"{plots} ({', '.join(names)})")
    if parquet is not None:
        with err.status("Writing the tables"), _replacing_files(parquet) as unfinished:
            for name, columns in TABLES.items():
                write_parquet(unfinished / f"{name}.parquet", columns(answer))
        say("written:", "green", f"{parquet} ({', '.join(TABLES)})")


@contextmanager
def _replacing_files(folder: Path) -> Iterator[Path]:
    """Yield a new folder whose files replace those in ``folder`` at the end."""
    try:
        folder.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".unfinished-") as unfinished:
            yield Path(unfinished)
            for file in sorted(Path(unfinished).iterdir()):
                file.replace(folder / file.name)
    except OSError as error:
        raise CrawlError(trouble(folder, error)) from error


#: The figures of a verdict by column.
_FIGURES: Final[Mapping[str, tuple[Callable[[PolicyVerdict], float], type[np.generic]]]] = {
    "age_days": (lambda it: it.age_days, np.float64),
    "new_pages_appeared": (lambda it: it.appeared, np.int64),
    "new_pages_found": (lambda it: it.found, np.int64),
    "new_pages_delay_days": (lambda it: it.delay_days, np.float64),
    "fetches": (lambda it: it.fetches, np.int64),
    "budget": (lambda it: it.paid, np.float64),
    "misses": (lambda it: it.misses, np.int64),
    "asks_without_news": (lambda it: it.again, np.float64),
    "flagged": (lambda it: len(it.flagged), np.int64),
}


def _verdicts(answer: StoreComparison) -> Columns:
    every = answer.comparison.verdicts
    return _named(every, np.ones(len(every), np.intp)) | {
        **_bounded("harmonic", [each.harmonic for each in every]),
        **_bounded("binary", [each.binary for each in every]),
        **{name: np.array([*map(of, every)], kind) for name, (of, kind) in _FIGURES.items()},
    }


def _daily(answer: StoreComparison) -> Columns:
    every, start = answer.comparison.verdicts, answer.comparison.start
    days = np.array([len(each.harmonic.daily) for each in every])
    columns = _named(every, days)
    columns["day"] = _joined([(start + np.arange(number)) * _DAY_S for number in days.tolist()])
    for name in ("harmonic", "binary"):
        together = _joined([getattr(each, name).daily for each in every])
        columns |= {f"{name}_{b}": c for b, c in zip(BOUNDS[:3], together.T, strict=True)}
    return columns


def _calibration(answer: StoreComparison) -> Columns:
    every = answer.comparison.verdicts
    calibration = [each.calibration for each in every]
    bins = np.array([len(each.asks) for each in calibration])
    return _named(every, bins) | {
        "from_probability": _joined([np.arange(number) / number for number in bins.tolist()]),
        "asks": _joined([each.asks for each in calibration]),
        "expected": _joined([each.expected for each in calibration]),
        "changed": _joined([each.changed for each in calibration]),
    }


def _pages(answer: StoreComparison) -> Columns:
    captures, rate = answer.captures, answer.comparison.rate
    return {
        "url": _texts(answer.url),
        "host": _texts(answer.origin)[captures.host],
        "importance": captures.importance,
        "found": captures.found * _DAY_S,
        "captures": np.diff(captures.offsets),
        "change_rate": rate,
        "rate_class": _texts([*RATE_CLASSES, RAREST])[class_of(rate)],
    }


def _page_verdicts(answer: StoreComparison) -> Columns:
    every, pages = answer.comparison.verdicts, answer.comparison.pages
    flagged = np.zeros((len(every), pages), np.bool_)
    for place, each in enumerate(every):
        flagged[place, each.flagged] = True
    return _named(every, np.full(len(every), pages)) | {
        "url": np.tile(_texts(answer.url), len(every)),
        "fetches": _joined([each.by_page for each in every]),
        "believed_rate": _joined([each.believed for each in every]),
        "flagged": flagged.ravel(),
    }


#: The files without their ending, and what they hold.
TABLES: Final[Mapping[str, Callable[[StoreComparison], Columns]]] = {
    "verdicts": _verdicts,
    "daily": _daily,
    "calibration": _calibration,
    "pages": _pages,
    "page_verdicts": _page_verdicts,
}


def _named(verdicts: Sequence[PolicyVerdict], times: NDArray[np.intp]) -> Columns:
    """Repeat policy and budget for each row of a verdict."""
    return {
        "policy": np.repeat(_texts([each.policy for each in verdicts]), times),
        "budget_per_day": np.repeat([each.budget for each in verdicts], times),
    }


def _bounded(name: str, costs: Sequence[BoundedCost]) -> Columns:
    return {
        f"{name}_{b}": np.array([getattr(cost, b) for cost in costs], np.float64) for b in BOUNDS
    }


def _texts(words: Sequence[str]) -> NDArray[Any]:
    """Return texts as objects: an array of strings is as wide as the longest."""
    column = np.empty(len(words), object)
    column[:] = words
    return column


def _joined(parts: Sequence[ArrayLike]) -> NDArray[Any]:
    return np.concatenate([np.asarray(part) for part in parts])
