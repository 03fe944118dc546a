"""Options that verbs share: settings, site lists, store lookups, points in time."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from freshet.config import ConfigError
from freshet.crawler.admission.site_lists import (
    MAX_BYTES,
    SiteList,
    read_sites,
    seeds_from_arguments,
)
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.frontier.clock import moment_of
from freshet.crawler.run import terminal
from freshet.crawler.run.terminal import fail, say
from freshet.entry_points import found, loaded
from freshet.storage.database import open_store
from freshet.storage.errors import trouble
from freshet.storage.records import StoredSeed
from freshet.storage.stores import Stores, is_folder, open_stores, require_there
from freshet.storage.tables import runs

if TYPE_CHECKING:
    from freshet.config.loading import Origins
    from freshet.config.settings import Settings
    from freshet.crawler.run.orders import CrawlReport

T = TypeVar("T")

#: Option groups in the help of verbs with many options; rare options are hidden.
SITES = "Sites"
LIMITS = "Limits and manners"
RESULTS = "Store and output"
MACHINES = "Network and machines"


def store_of(context: typer.Context, parameter: typer.CallbackParam, value: Path | None) -> object:
    """Return the store of the option, or else of the settings."""
    source = context.get_parameter_source(str(parameter.name))
    if source is not None and source.name != "DEFAULT":
        return value
    return read_settings(context.params.get("config"), {})[0].db


Db = Annotated[
    Path,
    typer.Option(
        "--db",
        metavar="FILE|DIR",
        help="The store: an SQLite file, or a folder of shards; else FRESHET_DB or freshet.toml.",
        callback=store_of,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings in TOML; see `freshet config show`.",
        # The settings may name the store.
        is_eager=True,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]

Page = Annotated[
    str, typer.Argument(metavar="URL", help="The page; without a scheme, https then http is tried.")
]
AnyUrl = Annotated[
    str, typer.Argument(metavar="URL", help="Any URL; without a scheme, https then http is tried.")
]


def _show_all(context: typer.Context, value: bool) -> None:
    """Show the help with all options."""
    if value:
        for each in context.command.params:
            setattr(each, "hidden", False)  # noqa: B010 - not every kind of parameter has it
        typer.echo(context.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", callback=_show_all, is_eager=True, help="Show this message with all options."
    ),
]
Logs = Annotated[
    str | None,
    typer.Option(
        "--log-format",
        metavar="FORMAT",
        help="Format of log lines: console or json.",
        rich_help_panel=RESULTS,
    ),
]

#: Options of both `crawl` and `daemon`.
Sites = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SITE…", help="Hosts or URLs; without a scheme, https then http is tried."
    ),
]
Scope = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="KIND",
        help="The extent of a site: host, domain, prefix or list; the store remembers it.",
        rich_help_panel=SITES,
    ),
]
Delay = Annotated[
    float | None,
    typer.Option(
        "--delay",
        metavar="SECONDS",
        help="Seconds between two requests to a host.",
        rich_help_panel=LIMITS,
    ),
]
Contact = Annotated[
    str | None,
    typer.Option(
        "--contact",
        metavar="MAIL|URL",
        help="Mail address or URL for webmasters; on a terminal you are asked once.",
        rich_help_panel=LIMITS,
    ),
]
PrivateAddresses = Annotated[
    bool | None,
    typer.Option(
        "--allow-private-addresses",
        help="Also crawl loopback and private networks.",
        rich_help_panel=MACHINES,
    ),
]
Resolve = Annotated[
    list[str] | None,
    typer.Option(
        "--resolve",
        metavar="HOST:ADDRESS",
        help="Fixed address of a host; may be repeated.",
        rich_help_panel=MACHINES,
        hidden=True,
    ),
]
ArchiveDir = Annotated[
    str | None,
    typer.Option(
        "--archive",
        metavar="DIR",
        help="Archive all requests and responses there, as WARC files.",
        rich_help_panel=RESULTS,
    ),
]
Requisites = Annotated[
    bool | None,
    typer.Option(
        "--requisites",
        help="With --archive: also fetch the style sheets, images, fonts and scripts of pages.",
        rich_help_panel=RESULTS,
        hidden=True,
    ),
]
Index = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="on|off",
        help="Make the index for `freshet search`, or delete it.",
        rich_help_panel=RESULTS,
    ),
]
Queries = Annotated[
    str | None,
    typer.Option(
        "--queries",
        metavar="FILE|made",
        help="With --index on: measure search quality with these queries, or with made ones.",
        rich_help_panel=RESULTS,
        hidden=True,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Stop at a bad line of the site list.", rich_help_panel=SITES, hidden=True
    ),
]
Shards = Annotated[
    int | None,
    typer.Option(
        "--shards", metavar="N", min=1, max=1_000,
        help="Make a new store of N shards in a folder, with one process per shard.",
        rich_help_panel=MACHINES, hidden=True,
    ),
]  # fmt: skip
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="With shards: the Ray cluster to join; default: start one.",
        rich_help_panel=MACHINES,
        hidden=True,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Log every page as it is committed.", rich_help_panel=RESULTS
    ),
]

DEFAULT_DB = Path("crawl.db")


# -- a store, or the shards of one -------------------------------------------
def home_of(db: Path, url: str, config: Path | None) -> Path:
    """Return the store file that holds a URL or host: ``db``, or one of its shards."""
    if not is_folder(db):
        return db
    from freshet.crawler.run.network import shard_of  # noqa: PLC0415 - slow to import

    groups = read_settings(config, {})[0].politeness.groups
    with terminal.told_in_one_line():
        stores = open_stores(db)
        home = stores.paths[shard_of(terminal.spellings(url)[0], stores, groups)]
        require_there(home)
    return home


def stores_at(db: Path) -> Stores:
    """Return the stores at a path; exit if the shards file is invalid."""
    with terminal.told_in_one_line():
        return open_stores(db)


def read_each(db: Path, read: Callable[[Path], Awaitable[T]]) -> tuple[list[T], dict[str, object]]:
    """Return the results of ``read`` per readable store, and the JSON entry for the others."""
    stores = stores_at(db)
    return list(terminal.run(stores.each(read)).values()), tell_down(db, stores.down)


def tell_down(db: Path, down: Mapping[int, str]) -> dict[str, object]:
    """Name the unreadable shards on stderr; return their JSON entry, empty for a single file."""
    for shard, why in down.items():
        say("down:", "yellow", f"shard {shard}: {why}; the others answer")
    return {"down": {str(n): why for n, why in down.items()}} if is_folder(db) else {}


def read_settings(file: Path | None, overrides: Mapping[str, object]) -> "tuple[Settings, Origins]":
    """Return the settings with the overrides that are not None; exit if one is invalid."""
    given = {key: value for key, value in overrides.items() if value is not None}
    from freshet.config.loading import load, outdated  # noqa: PLC0415 - slow to import

    try:
        settings, origins = load(file, given)
        for line in outdated(origins):
            say("note:", "yellow", line)
        if any(each.include or each.ignore for each in settings.sites):
            from freshet.crawler.run.network import selector_hints  # noqa: PLC0415 - likewise

            selector_hints(settings)
    except (ConfigError, UsageError) as error:
        fail(str(error), 2)
    return settings, origins


def overruled(settings: "Settings", **options: object) -> "Settings":
    """Return the settings without those [[sites]] keys that an option overrides for all sites."""
    given = {name: None for name, value in options.items() if value is not None}
    sites = tuple(each.model_copy(update=given) for each in settings.sites)
    return settings.model_copy(update={"sites": sites}) if given else settings


# -- site lists --------------------------------------------------------------
def read_list(file: Path) -> bytes:
    """Return the bytes of a list, at most one more than the size limit."""
    with file.open("rb") as opened:
        return opened.read(MAX_BYTES + 1)


def read_again(arguments: list[str], file: str | None) -> list[StoredSeed]:
    """Return the current seeds of the arguments and the file.

    CrawlError: the file cannot be read, a line is invalid, or there are no seeds.
    """
    found = list(seeds_from_arguments(arguments).seeds)
    if file is None or file == "-":
        return found
    try:
        site_list = read_sites(read_list(Path(file)), file)
    except OSError as error:
        raise CrawlError(trouble(file, error)) from error
    for problem in site_list.problems:
        raise CrawlError(f"{file}:{problem.line}: {problem.message}; correct that line")
    if not site_list.seeds:
        raise CrawlError(f"{file}: it has no usable line; write one host or URL a line")
    return [*found, *site_list.seeds]


def scope_of(db: Path, wanted: str | None, config: Path | None) -> str | None:
    """Return the store's scope, which only the option changes; None for a new store."""
    if wanted is not None or not db.exists():
        return wanted
    there = [path for path in stores_at(db).paths if path.exists()]
    if not there:
        return wanted
    scope = terminal.run(_stored_scope(there[0]))
    settings, origins = read_settings(config, {})
    if scope is not None and scope != settings.crawl.scope and origins["crawl.scope"] != "default":
        say(
            "not used:", "yellow",
            f"crawl.scope = {settings.crawl.scope} ({origins['crawl.scope']}): the scope of {db} "
            f"is {scope}; --scope {settings.crawl.scope} changes it",
        )  # fmt: skip
    return scope


async def _stored_scope(db: Path) -> str | None:
    # Open for writing, to migrate a store of an older version.
    database = await open_store(db)
    try:
        return await runs.latest_scope(database.reader)
    finally:
        await database.close()


def overrides(pairs: list[str] | None) -> dict[str, str] | None:
    """Return the addresses of ``HOST:ADDRESS`` options by host; exit if one is malformed."""
    if not pairs:
        return None
    split = [pair.partition(":") for pair in pairs]
    if bad := next((p for p, (h, _, a) in zip(pairs, split, strict=True) if not h or not a), None):
        fail(f"--resolve {bad}: expected HOST:ADDRESS, such as example.org:127.0.0.1", 2)
    return {host: address for host, _, address in split}


def _site_list(file: str) -> SiteList:
    """Read a site list, or standard input for ``-``; exit if that fails."""
    try:
        data = read_list(Path("/dev/stdin" if file == "-" else file))
    except OSError as error:
        fail(f"--sites {trouble(file, error)}", 2)
    return read_sites(data, file)


def _report_problems(name: str, site_list: SiteList, *, strict: bool) -> None:
    """Report skipped lines of a list, or arguments; with ``strict``, exit at the first one."""
    for problem in site_list.problems:
        place = f"{name}:{problem.line}" if name else problem.text
        if strict:
            fail(f"{place}: {problem.message}; correct it, or leave out --strict", 2)
        say("skipped", "yellow", f"{place}: {problem.message}")


def given_seeds(arguments: list[str], file: str | None, *, strict: bool) -> list[StoredSeed]:
    """Return the seeds of the arguments and the file; exit if they have none."""
    for text in filter(_is_file_name, arguments):
        what = "a file" if Path(text).exists() else "neither a host nor an existing file"
        fail(f"{text} is {what}; pass a site list with --sites FILE", 2)
    lists = {"": seeds_from_arguments(arguments)}
    if file is not None:
        lists[file] = _site_list(file)
    for name, site_list in lists.items():
        _report_problems(name, site_list, strict=strict)
    found = [seed for site_list in lists.values() for seed in site_list.seeds]
    if (arguments or file is not None) and not found:
        fail("the site list has no usable line; write one host or URL a line", 2)
    return found


#: File endings that are not top-level domains.
_FILE_ENDS: Final = (".txt", ".csv", ".tsv", ".xml", ".opml", ".lst", ".json", ".toml", ".html")


def _is_file_name(text: str) -> bool:
    """Return whether an argument names a file instead of a site."""
    host = text.partition("/")[0].lower()
    is_path = (text != "" and host in {"", ".", "..", "~"}) or host.endswith(_FILE_ENDS)
    return "://" not in text and (is_path or Path(text).is_file())


# -- shards ----------------------------------------------------------------


#: Entry points of a function like ``run_sharded`` in the extension shards.
SHARDING: Final = "freshet.sharding"


def _require_sharding() -> bool:
    """Return True; exit if the extension shards is not installed."""
    if not found(SHARDING):
        fail("a sharded store needs the extension shards, which is not installed", 2)
    return True


def run_sharded(*order: Any, **options: Any) -> "CrawlReport":
    """Visit the pages of all shards; return the sum of their reports."""
    run = next(iter(loaded(SHARDING).values()))
    report: CrawlReport = run(*order, **options)
    return report


def for_shards(db: Path, shards: int | None, address: str | None) -> bool:
    """Return whether the store is sharded; exit if the options contradict it."""
    if is_folder(db):
        count = len(stores_at(db).paths)
        if shards not in {None, count}:
            word = "split" if (shards or 0) > count else "merge"
            fail(f"--shards {shards}: {db} has {count}; `freshet shards {word}` changes that", 2)
        return _require_sharding()
    if shards is None:
        if address is not None:
            fail("--ray ADDRESS needs a sharded store; add --shards N", 2)
        return False
    if db.exists():
        fail(f"--shards {shards}: {db} is one store; name a new folder with --db", 2)
    return _require_sharding()


# -- since -------------------------------------------------------------------


def since(text: str, now: float) -> float:
    """Return the time that ``--since`` names; exit if :func:`moment_of` rejects it."""
    try:
        return moment_of(text, now)
    except ValueError as error:
        fail(f"--since {error}", 2)


# -- a contact ---------------------------------------------------------------


def host_needing_contact(
    settings: "Settings", db: Path | None, seeds: Sequence[StoredSeed]
) -> str | None:
    """Return a public host of these seeds, or of the store ``db``, that needs a contact.

    Return None if there is no such host, or if the settings have a contact.
    """
    if settings.crawl.contact:
        return None
    return _public_host(settings, db, [seed.url for seed in seeds])


def _public_host(settings: "Settings", db: Path | None, urls: Sequence[str]) -> str | None:
    """Return a public host of these URLs, or else of the store ``db``, or None."""
    from freshet.crawler.run.network import public_host  # noqa: PLC0415 - slow to import

    host = public_host(urls, settings.network.resolve)
    if host is None and db is not None and db.exists():
        there = [path for path in stores_at(db).paths if path.exists()]
        stored = [url for path in there for url in terminal.run(_stored(path))]
        host = public_host(stored, settings.network.resolve)
    return host


async def _stored(path: Path) -> list[str]:
    # Open for writing, to migrate a store of an older version.
    database = await open_store(path)
    try:
        return [seed.root_url or seed.url for seed in await runs.load(database.reader)]
    finally:
        await database.close()
