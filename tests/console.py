"""The whole console command, with every verb, for tests to invoke."""

import json
from datetime import datetime
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from freshet.crawler.cli.verbs import application

app = application([])


def freshet(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def shown(*arguments: object) -> str:
    """Return the standard output of a command that succeeds."""
    result = freshet(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(*arguments: object) -> Any:
    """Return what a command that succeeds tells as JSON: one value on one line, without NaN."""
    told = shown(*arguments, "--json")
    assert told.count("\n") == 1
    return json.loads(told, parse_constant=pytest.fail)


def unix(text: str) -> float:
    """Return the Unix seconds of a time in JSON."""
    return datetime.fromisoformat(text).timestamp()
