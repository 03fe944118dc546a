"""Sources of a plan: from a store, with learned change rates, or from CSV and Parquet files."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.config.settings import Settings
from freshet.config.sites import Sites
from freshet.crawler.admission.site_lists import UNDECODED
from freshet.crawler.errors import CrawlError, UsageError, needs_extra
from freshet.crawler.run import terminal
from freshet.crawler.run.capacities import exchange_of, key_of, numbered
from freshet.crawler.run.importance import ImportanceData, learnt_items, terms, weigh
from freshet.crawler.run.network import with_kept
from freshet.crawler.run.state import load_state
from freshet.crawler.run.terminal import replacing
from freshet.crawler.urls import origin
from freshet.scheduler import estimate
from freshet.scheduler.arrays import Bools, Floats, Ints, rows_among
from freshet.scheduler.estimate.evidence import evidence_of
from freshet.scheduler.queue.ephemeral import item_terms, sources
from freshet.scheduler.queue.new_pages import Churning, recall_churn
from freshet.scheduler.queue.rankers import PolicyRanker
from freshet.scheduler.sources import Rows
from freshet.storage.errors import trouble
from freshet.storage.queries import columns, link_columns, page
from freshet.storage.queries.columns import KeptPages, PastObservations
from freshet.storage.tables import claims

_DAY_S: Final = 86_400.0
_DAY_HOURS: Final = 24.0
#: What a file must have of each source, and what it may.
REQUIRED = ("url", "change_rate")
OPTIONAL = ("importance", "host", "complete_observations")

_LONGEST_VALUE = 60
#: More than five cells of the longest that csv reads.
_LINE_CHARS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PlanSources:
    """n sources; ``host`` are rows of ``hosts``, ``change_rate`` is per day."""

    url: Sequence[str]
    importance: NDArray[np.float64]
    change_rate: NDArray[np.float64]
    complete_observations: NDArray[np.bool_]
    host: NDArray[np.intp]
    hosts: Sequence[str]

    def __len__(self) -> int:
        return len(self.url)


@dataclass(frozen=True, slots=True)
class _FileColumns:
    """The columns of a file that are there, by name; texts as lists.

    ``numbers`` tell people where to find the rows, counted in ``unit``: line, row.
    """

    path: Path
    unit: str
    numbers: Sequence[int]
    values: Mapping[str, Any]

    def refuse(self, row: int, column: str, shown: str, accepted: str) -> NoReturn:
        """Raise an error about a value."""
        refuse(self.path, f"{self.unit} {self.numbers[row]}", column, shown, accepted)


def refuse(path: Path, place: str, column: str, shown: str, accepted: str) -> NoReturn:
    """Raise an error about a value in a file, with the accepted values."""
    if len(shown) > _LONGEST_VALUE:
        shown = shown[: _LONGEST_VALUE - 1] + "…"
    raise UsageError(f"{path}: {place}: {column}: is {shown}; accepted is {accepted}")


def check_header(path: Path, names: Sequence[str]) -> None:
    """Refuse missing, unknown and repeated columns."""
    known = (*REQUIRED, *OPTIONAL)
    accepted = f"accepted are {', '.join(known)}, of which {' and '.join(REQUIRED)} are required"
    for name in names:
        if name not in known:
            raise UsageError(f"{path}: column {name[:80]!r} is not known; {accepted}")
        if names.count(name) > 1:
            raise UsageError(
                f"{path}: column {name!r} is there {names.count(name)} times; leave one"
            )
    for name in REQUIRED:
        if name not in names:
            raise UsageError(f"{path}: column {name!r} is missing; {accepted}")


def checked(columns: _FileColumns) -> PlanSources:
    """Check the columns of a file and return its sources.

    Defaults: importance 1, the URL's origin as the host, incomplete observations.
    """
    url, named = columns.values["url"], columns.values.get("host")
    n = len(url)
    if not n:
        raise UsageError(f"{columns.path}: has no rows; it needs one for each source")
    host, hosts = _origins(columns, url)
    if named is not None:
        host, hosts = numbered(named)
        for name in hosts:
            if not name.strip() or not name.isprintable():
                columns.refuse(named.index(name), "host", repr(name), "a name")
    _refuse_twice(columns, url)
    return PlanSources(
        url=url,
        importance=_rates(columns, "importance", np.ones(n)),
        change_rate=_rates(columns, "change_rate", np.zeros(n)),
        complete_observations=columns.values.get("complete_observations", np.zeros(n, np.bool_)),
        host=host,
        hosts=hosts,
    )


def _rates(columns: _FileColumns, name: str, default: NDArray[np.float64]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = columns.values.get(name, default)
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        columns.refuse(row, name, str(values[row]), "a finite number of at least 0")
    return values


def _origins(columns: _FileColumns, urls: Sequence[str]) -> tuple[NDArray[np.intp], list[str]]:
    """Return the origin of each URL, which proves that it is a URL."""
    known: dict[str, str] = {}
    names = []
    for row, url in enumerate(urls):
        # URLs are many, origins few: most are told by the text before the path.
        head = "/".join(url.split("/", 3)[:3])
        name = known.get(head) or _origin(url)
        if name is None or not url.isprintable():
            columns.refuse(row, "url", repr(url), "an absolute http or https URL")
        if not head.endswith("/"):
            # Behind further slashes another host may stand.
            known[head] = name
        names.append(name)
    return numbered(names)


def _origin(url: str) -> str | None:
    try:
        return str(origin(url))
    except ValueError:
        return None


def _refuse_twice(columns: _FileColumns, urls: Sequence[str]) -> None:
    if len(set(urls)) == len(urls):
        return
    first: dict[str, int] = {}
    for row, url in enumerate(urls):
        if url in first:
            earlier = f"{columns.unit} {columns.numbers[first[url]]}"
            columns.refuse(row, "url", repr(url), f"each URL once, and {earlier} has it")
        first[url] = row


# -- csv files ---------------------------------------------------------------
# RFC 4180, UTF-8; the first line names the columns.
_TRUTH = {"true": True, "false": False, "1": True, "0": False}

#: How a value is read, as what type of array its column is kept, and what is accepted.
_READ: dict[str, tuple[Callable[[str], float], str, str]] = {
    "importance": (float, "d", "a finite number of at least 0"),
    "change_rate": (float, "d", "a finite number of at least 0"),
    "complete_observations": (lambda text: _TRUTH[text.strip().lower()], "b", "true or false"),
}


def read_csv(path: Path) -> _FileColumns:
    """Read the columns of a CSV file; blank lines are left out."""
    lines = array("q")
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(_lines(path, file))
        try:
            names = [name.strip() for name in next(reader, [])]
            if not names:
                raise UsageError(f"{path}: is empty; accepted is a line of column names and rows")
            check_header(path, names)
            columns: list[Any] = [array(_READ[name][1]) if name in _READ else [] for name in names]
            for row in filter(None, reader):
                lines.append(reader.line_num)
                _add_row(path, reader.line_num, names, row, columns)
        except csv.Error as error:
            raise CrawlError(
                f"{path}: line {reader.line_num}: is not CSV ({error}); correct it"
            ) from error
    values = dict(zip(names, columns, strict=True))
    for name in _READ.keys() & values.keys():
        values[name] = np.array(values[name], np.bool_ if _READ[name][1] == "b" else np.float64)
    return _FileColumns(path, "line", lines, values)


def _add_row(
    path: Path, line: int, names: Sequence[str], row: Sequence[str], columns: Sequence[Any]
) -> None:
    """Append the values of a row to the columns."""
    if len(row) != len(names):
        raise UsageError(f"{path}: line {line}: has {len(row)} fields; accepted are {len(names)}")
    for name, text, column in zip(names, row, columns, strict=True):
        if name not in _READ:
            column.append(text)
            continue
        read, _, accepted = _READ[name]
        try:
            column.append(read(text))
        except (ValueError, KeyError):
            refuse(path, f"line {line}", name, repr(text), accepted)


def write_csv(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of one length.

    Numbers have all their digits; infinity is ``inf``, a truth value ``true`` or ``false``.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*map(_texts, columns.values()), strict=True))


def _texts(values: NDArray[Any]) -> Iterator[Any]:
    """Yield the values as they are written; a column is never wholly in memory as texts."""
    if values.dtype == np.bool_:
        return ("true" if value else "false" for value in values)
    return (value.item() if isinstance(value, np.generic) else value for value in values)


def _lines(path: Path, file: IO[str]) -> Iterator[str]:
    """Yield the lines; one that is longer than any row is cut, and so refused."""
    for number, line in enumerate(iter(lambda: file.readline(_LINE_CHARS), ""), 1):
        if not line.isascii() and UNDECODED.search(line):
            raise CrawlError(f"{path}: line {number}: is not UTF-8; save it as UTF-8")
        yield line


# -- parquet files -----------------------------------------------------------
# DuckDB (the extra ``parquet``) sees one file and nothing else: it neither reaches the network
# nor loads extensions.
if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MEMORY = "2GB"

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMBERS = (*_INTEGERS, *(f"U{name}" for name in _INTEGERS), "FLOAT", "DOUBLE", "DECIMAL")

#: For each column what it is read as, DuckDB's names of the types that are accepted, and ours.
_TYPES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "url": ("VARCHAR", ("VARCHAR",), "text"),
    "change_rate": ("DOUBLE", _NUMBERS, "numbers"),
    "importance": ("DOUBLE", _NUMBERS, "numbers"),
    "host": ("VARCHAR", ("VARCHAR", "ENUM"), "text"),
    "complete_observations": ("BOOLEAN", ("BOOLEAN",), "truth values"),
}


def require_duckdb(path: Path) -> None:
    """Raise :class:`CrawlError` if DuckDB is not installed."""
    if find_spec("duckdb") is None:
        raise CrawlError(needs_extra(f"{path}: Parquet", "parquet"))


def read_parquet(path: Path) -> _FileColumns:
    """Read the columns of a Parquet file."""
    require_duckdb(path)
    with path.open("rb") as file:
        # By this name no character of the path is taken for a pattern.
        name = f"/dev/fd/{file.fileno()}"
        with _duckdb(path, name) as connection:
            names = _checked_names(path, connection, name)
            columns = ", ".join(f'"{each}"::{_TYPES[each][0]} AS "{each}"' for each in names)
            found = connection.execute(f"SELECT {columns} FROM read_parquet(?)", [name])
            return _columns(path, found.fetchnumpy())


def write_parquet(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of one length, texts as arrays of objects."""
    require_duckdb(path)
    with _duckdb(path, str(path)) as connection:
        connection.register("plan", dict(columns))
        connection.table("plan").write_parquet(str(path), compression="zstd", use_tmp_file=False)


@contextmanager
def _duckdb(path: Path, name: str) -> Iterator[DuckDBPyConnection]:
    """Open a DuckDB that may read only the file of this name; its errors name ``path``."""
    import duckdb  # noqa: PLC0415 - an extra

    quoted = name.replace("'", "''")
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "memory_limit": _MEMORY,
    }
    try:
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute(f"SET allowed_paths = ['{quoted}']")
            connection.execute("SET enable_external_access = false")
            yield connection
    except duckdb.Error as error:
        sentence = str(error).partition("\n")[0].replace(name, path.name)
        raise CrawlError(f"{path}: {sentence}; check it and its disk") from error


def _checked_names(path: Path, connection: DuckDBPyConnection, name: str) -> list[str]:
    rows = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [name]).fetchall()
    types: dict[str, str] = {row[0]: row[1] for row in rows}
    check_header(path, list(types))
    for column, of_type in types.items():
        _, accepted, words = _TYPES[column]
        if of_type.partition("(")[0] not in accepted:
            raise UsageError(f"{path}: {column}: is of type {of_type}; accepted are {words}")
    return list(types)


def _columns(path: Path, found: Mapping[str, NDArray[Any]]) -> _FileColumns:
    texts = {name: found[name].tolist() for name in ("url", "host") if name in found}
    arrays = {name: np.asarray(values) for name, values in found.items()}
    columns = _FileColumns(path, "row", range(1, len(found["url"]) + 1), arrays | texts)
    for name, values in found.items():
        missing = np.ma.getmaskarray(values)
        if missing.any():
            columns.refuse(int(np.argmax(missing)), name, "null", _TYPES[name][2])
    return columns


# -- files -------------------------------------------------------------------
# The ending of a name selects the format.
_READERS = {".csv": read_csv, ".parquet": read_parquet}
_WRITE = {".csv": write_csv, ".parquet": write_parquet}


def read_sources(path: Path) -> PlanSources:
    """Read the sources in a file.

    Raises:
        CrawlError: the file does not exist, or is not what its ending says.
        UsageError: naming the row, the column and the accepted values.
    """
    try:
        return checked(_READERS[_ending(path)](path))
    except OSError as error:
        raise CrawlError(trouble(path, error)) from error


def check_writable(path: Path) -> None:
    """Check before the work that a plan can be written here; write nothing.

    Raises:
        UsageError: the ending is not accepted.
        CrawlError: the folder or the file to replace is of a wrong kind, or an extra is missing.
    """
    if _ending(path) == ".parquet":
        require_duckdb(path)
    if not path.parent.is_dir():
        raise CrawlError(
            f"{path}: the folder does not exist: {path.parent}; make it, or name another"
        )
    if path.exists() and not path.is_file():
        raise CrawlError(f"{path}: not a file, so it is not replaced; name another")


def write_plan(path: Path, columns: Mapping[str, NDArray[Any]]) -> bool:
    """Write the columns of a plan, whole or not at all; return whether a file was replaced."""
    with replacing(path) as unfinished:
        _WRITE[_ending(path)](unfinished, columns)
        return path.exists()


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in _READERS:
        raise UsageError(f"{path}: accepted are files that end in {' or '.join(_READERS)}")
    return ending


# -- from a store ------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class EphemeralPages:
    """The k pages of a store that are ephemeral sources; every column has length k.

    Attributes:
        row: of the page.
        rate: Λ, new items a day.
        own: the share of them that count here: an item is divided among the sources that show it.
        decay: μ, per day.
        worth: E, what an item is worth when it appears.
        learnt_from: the openings that have taught it; nan: it is set.
        declared: whether the site list or a table of sites says so.
        last_visit: Unix days of the last visit.
    """

    row: Rows
    rate: Floats
    own: Floats
    decay: Floats
    worth: Floats
    learnt_from: Floats
    declared: Bools
    last_visit: Floats

    def __len__(self) -> int:
        return len(self.row)

    @property
    def half_life_hours(self) -> Floats:
        """(k,), the half-life of an item."""
        hours: Floats = np.log(2) / self.decay * _DAY_HOURS
        return hours


async def _ephemeral(
    connection: aiosqlite.Connection, pages: KeptPages, weighing: ImportanceData, settings: Settings
) -> EphemeralPages:
    """Return the ephemeral sources as a daemon of these settings sees them."""
    n = len(pages)
    listed = weighing.half_lives(pages.page_id, pages.url)
    half_life = terms(
        pages.url, pages.host, np.ones(n), Sites(settings.sites), listed
    ).half_life_days
    learnt = await learnt_items(connection, settings.ephemeral)
    on = replace(exchange_of(settings.ephemeral, settings.daemon), learnt=learnt)
    since = pages.checked_at / _DAY_S
    churning, found_at = Churning(), pages.found_at / _DAY_S
    await recall_churn(connection, churning, partial(rows_among, pages.page_id), found_at)
    row, rate = sources(
        half_life, churning, on, found_at=found_at, since=since, held=np.ones(n, np.bool_)
    )
    links = await link_columns.shown(connection, pages.page_id[row].tolist())
    # 1 / the pages that show an item, in the mean over the items of each page.
    _, item, count = np.unique(links[:, 1], return_inverse=True, return_counts=True)
    place = np.searchsorted(pages.page_id[row], links[:, 0])
    total = np.bincount(place, 1 / count[item], minlength=len(row))
    number = np.bincount(place, minlength=len(row))
    decay, worth = item_terms(half_life[row], pages.page_id[row], on)
    said = np.isfinite(half_life[row]) & (half_life[row] > 0)
    return EphemeralPages(
        row=row,
        rate=rate,
        own=np.where(number > 0, total / np.maximum(number, 1), 1.0),
        decay=decay,
        worth=worth,
        learnt_from=np.where(said, np.nan, on.learnt.of(pages.page_id[row])[2]),
        declared=half_life[row] > 0,
        last_visit=since[row],
    )


@dataclass(frozen=True, slots=True)
class RateLearning:
    """The evidence for the change rates of a store's pages.

    ``without_evidence`` pages have no interval between two captures: they get the estimator's
    prior. ``gone`` pages are left out of the plan.
    """

    estimator: str
    observations: int
    intervals: int
    without_evidence: int
    gone: int


def read_store(
    db: Path, estimator: str, settings: Settings
) -> tuple[PlanSources, list[float | None], RateLearning, EphemeralPages]:
    """Return the pages of a store as sources, with their change rates by the named estimator.

    The others are the delay of each host of the result (a host queue), None if it is unknown; the
    evidence for the rates; and the ephemeral sources. Pages are weighted as a daemon of these
    settings would; the estimator takes those of a host queue to be alike.
    """
    pages, observed, weighing, decaying, settings, told = terminal.run(_history(db, settings))
    queue, queues = numbered(map(key_of, pages.hosts))
    host = queue[pages.host]
    evidence = evidence_of(observed.page, observed.at, observed.kind)
    learner = estimate.load(estimator, host)
    learner.observe(evidence)
    origins = [place.origin for place in pages.hosts]
    own = weighing.importances(pages.page_id, pages.url, pages.host, origins)
    complete, rates = told
    learned = PlanSources(
        url=pages.url,
        importance=terms(pages.url, pages.host, own, Sites(settings.sites)).importance,
        change_rate=np.where(complete, rates, learner.change_rate()),
        complete_observations=complete,
        host=host,
        hosts=queues,
    )
    delays_s = {
        key_of(each): None if each.state is None else each.state.delay_s for each in pages.hosts
    }
    without = int((np.bincount(evidence.source, minlength=len(pages)) == 0).sum())
    learning = RateLearning(estimator, len(observed), len(evidence), without, pages.gone)
    return learned, list(delays_s.values()), learning, decaying


async def _history(
    db: Path, settings: Settings
) -> tuple[
    KeptPages, PastObservations, ImportanceData, EphemeralPages, Settings, tuple[Bools, Floats]
]:
    """Read pages, their histories, and the settings that hold, from one snapshot."""
    async with page.snapshot(db) as connection:
        settings = await with_kept(settings, connection)
        pages = await columns.page_histories(connection)
        observed = await columns.observations(connection, pages.page_id)
        weighing = await weigh(connection, settings.daemon.importance)
        ephemeral = await _ephemeral(connection, pages, weighing, settings)
        told = await _complete(connection, pages.page_id, settings)
        return pages, observed, weighing, ephemeral, settings, told


async def _complete(
    connection: aiosqlite.Connection, page_id: Ints, settings: Settings
) -> tuple[Bools, Floats]:
    """Return (n,), which pages a daemon of a rate policy observes completely, and their rates."""
    complete, rates = np.zeros(len(page_id), np.bool_), np.zeros(len(page_id))
    if not await claims.has_news(connection):
        return complete, rates
    daemon = settings.daemon.model_copy(update={"policy": "lambda_crawl", "budget": "1/day"})
    state = await load_state(connection, settings.model_copy(update={"daemon": daemon}))
    try:
        assert isinstance(state.ranker, PolicyRanker)  # noqa: S101 - the policy is one of these
        table = state.ranker.table()
        rows, known = state.agenda.pages.rows(page_id)
        complete[known], rates[known] = table.complete_observations[rows], table.change_rate[rows]
        return complete, rates
    finally:
        await state.close()
