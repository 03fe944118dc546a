"""Where output goes: data to stdout, progress and messages to stderr."""

from __future__ import annotations

import json
import sys
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

from freshet.crawler.operation.masking import masked

#: Results for people; plain text when piped, and NO_COLOR is obeyed.
out = Console(highlight=False, soft_wrap=True)
#: Progress and messages.
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON value on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def fail(message: str, code: int = 1) -> NoReturn:
    """Say in one line what is wrong, and end with an exit code (2 for wrong usage)."""
    say("freshet:", "red", message)
    raise typer.Exit(code)


def say(word: str, style: str, message: str) -> None:
    """One line on stderr without secrets; what strangers wrote into it steers no terminal."""
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in masked(message))
    err.print(Text.assemble((word, style), " ", " ".join(line.split())))
