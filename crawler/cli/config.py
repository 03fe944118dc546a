"""``freshet config show``: every setting, and on request its origin."""

import json as json_module
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from freshet.config.settings import Settings
from freshet.crawler.cli.options import ConfigFile, Json, read_settings
from freshet.crawler.terminal import plain, print_json

#: Origins stand in one column, except behind values that are longer than most.
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
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Print every setting in effect, as lines of a configuration file (TOML).

    The command line overrides the environment (FRESHET_GROUP__KEY), which overrides the file, which
    overrides the defaults.
    """
    settings, origins = read_settings(config, {})
    if json:
        tables = {"db": str(settings.db)} | settings.model_dump(mode="json")
        print_json({"settings": tables} | ({"origins": dict(origins)} if origin else {}))
        return
    for name, value in _values(settings):
        line = f"{name} = {toml_value(value)}"
        typer.echo(f"{line:<{_COLUMN}}  # {plain(origins[name])}" if origin else line)


def _values(settings: Settings) -> Iterator[tuple[str, object]]:
    yield "db", str(settings.db)
    for group, table in settings.model_dump(mode="json", exclude_none=True).items():
        yield from ((f"{group}.{key}", value) for key, value in table.items())


def toml_value(value: object) -> str:
    """Write a value in TOML on one line; strings are as in JSON except for one character."""
    if isinstance(value, Mapping):
        pairs = [f"{toml_value(key)} = {toml_value(item)}" for key, item in value.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return json_module.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
