"""The whole console command, with every verb, for tests to invoke."""

from datetime import datetime

from typer.testing import CliRunner, Result

from freshet.crawler.cli.verbs import application

app = application([])


def freshet(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def unix(text: str) -> float:
    """Return the Unix seconds of a time in JSON."""
    return datetime.fromisoformat(text).timestamp()
