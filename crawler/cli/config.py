"""``freshet config show``: print the settings and their origins; write settings files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from freshet.config import ConfigError
from freshet.config.settings import Settings, SiteSettings
from freshet.config.sites import Sites, StoredSite
from freshet.config.writing import Keys, Tables, amended
from freshet.crawler.cli.options import ConfigFile, Json, read_settings
from freshet.crawler.run import terminal
from freshet.crawler.run.network import with_kept
from freshet.crawler.run.terminal import json_text, plain, print_json, replaced, spellings
from freshet.storage.database import reading
from freshet.storage.stores import open_stores

#: Origins are aligned in this column, unless a value is longer.
_COLUMN = 44

config_command = typer.Typer(help="Show the settings.", no_args_is_help=True)


@config_command.callback()
def _group() -> None:
    """Show the settings."""


@config_command.command("show")
def show_command(
    origin: Annotated[
        bool,
        typer.Option("--origin", help="Show the origin of each value: default, file, environment."),
    ] = False,
    site: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Show the settings that apply to this URL, and why."),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Print every setting in effect, as lines of a configuration file (TOML).

    The command line overrides the environment (FRESHET_GROUP__KEY), which overrides --config or
    ./freshet.toml, which overrides your user-wide file, which overrides the defaults. With --site,
    the [[sites]] tables and the settings made in the dashboard are applied.
    """
    settings, origins = read_settings(config, {})
    if site is not None:
        url = spellings(site)[0]
        settings = terminal.run(_with_stored(settings))
        _show_site(url, _of_site(settings, origins, url), as_json=json)
        return
    if json:
        tables = {"db": str(settings.db)} | settings.model_dump(mode="json")
        print_json({"settings": tables} | ({"origins": dict(origins)} if origin else {}))
        return
    for name, value in _values(settings):
        line = f"{name} = {toml_value(value)}"
        typer.echo(f"{line:<{_COLUMN}}  # {plain(origins[name])}" if origin else line)


#: Keys of [[sites]] with a default for all sites: the name of that setting.
_EVERYWHERE: Final = {
    "delay_s": "politeness.delay_s",
    "connections_per_host": "politeness.connections_per_host",
    "scope": "crawl.scope",
    "max_depth": "crawl.max_depth",
}


async def _with_stored(settings: Settings) -> Settings:
    for path in open_stores(settings.db).paths if settings.db.exists() else ():
        async with reading(path) as connection:
            return await with_kept(settings, connection)
    return settings


def _show_site(url: str, rows: Sequence[tuple[str, object, str]], *, as_json: bool) -> None:
    """Print the settings of a URL, each with its origin."""
    if as_json:
        print_json({"url": url, "settings": {k: {"value": v, "origin": o} for k, v, o in rows}})
        return
    for key, value, origin_of in rows:
        line = f"{key} = {toml_value(value)}" if value is not None else f"# {key}"
        typer.echo(f"{line:<{_COLUMN}}  # {plain(origin_of)}")


def _of_site(
    settings: Settings, origins: Mapping[str, str], url: str
) -> list[tuple[str, object, str]]:
    """Return each [[sites]] key, its value at a URL (None: not set), and the value's origin."""
    sites, rows = Sites(settings.sites), list[tuple[str, object, str]]()
    everywhere = dict(_values(settings))
    for key in list(SiteSettings.model_fields)[1:]:
        table, name = sites.ruling(url, key), _EVERYWHERE.get(key)
        if table is not None:
            value = table.model_dump(mode="json")[key]
            origin = str(settings.db) if isinstance(table, StoredSite) else origins["sites"]
            rows.append((key, value, f"{origin}, [[sites]] {table.match}"))
        elif name is not None:
            rows.append((key, everywhere[name], f"{origins[name]}, {name}"))
        else:
            rows.append((key, None, "not set"))
    for group, it in settings.groups().items():
        for key, holds in it.at(url):
            name = f"{group}.{key}"
            rows.append((name, holds or None, origins[name] if holds else "none match"))
    return rows


def _values(settings: Settings) -> Iterator[tuple[str, object]]:
    yield "db", str(settings.db)
    for group, table in settings.model_dump(mode="json", exclude_none=True).items():
        if isinstance(table, dict):
            yield from ((f"{group}.{key}", value) for key, value in table.items())
        else:
            yield group, table


def toml_value(value: object) -> str:
    """Return a value as TOML on one line; strings are written as in JSON."""
    if isinstance(value, Mapping):
        pairs = [f"{toml_value(key)} = {toml_value(item)}" for key, item in value.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return json_text(value)


def write_settings(
    path: Path, values: Mapping[str, object], tables: Tables | None = None,
    keys: Keys | None = None, *, mode: int = 0o666,
) -> None:  # fmt: skip
    """Write values, new tables, and keys of tables to a settings file, as :func:`amended`.

    The file is created if it is missing, and replaced atomically; comments and permissions stay.
    The previous version is kept beside it as ``NAME.previous``. Raises OSError, and ConfigError as
    :func:`amended`.
    """
    before = path.read_bytes() if path.exists() else b""
    try:
        text = before.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"file {path} is not UTF-8 at byte {error.start}; save it as UTF-8"
        ) from error
    text = amended(text, path, values, tables, keys)
    if path.exists():
        # It may hold secrets.
        with replaced(path.with_name(f"{path.name}.previous"), 0o600) as whole:
            whole.write_bytes(before)
    with replaced(path, mode) as whole:
        whole.write_bytes(text.encode())
