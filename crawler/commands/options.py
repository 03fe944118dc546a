"""The options that verbs share, and how they lie over the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from config.loading import ConfigError, Origins, load
from config.settings import Settings
from crawler.commands.console import fail

Db = Annotated[Path, typer.Option("--db", metavar="FILE", help="The store (one SQLite file).")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings in TOML; see `freshet config show`."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]

Logs = Annotated[
    str | None,
    typer.Option("--log-format", metavar="FORMAT", help="How log lines look: console or json."),
]

DEFAULT_DB = Path("crawl.db")


def read_settings(file: Path | None, overrides: Mapping[str, object]) -> tuple[Settings, Origins]:
    """The settings; options that were not given (None) stay out. Wrong ones end the program."""
    given = {key: value for key, value in overrides.items() if value is not None}
    try:
        return load(file, given)
    except ConfigError as error:
        fail(str(error), 2)
