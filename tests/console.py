"""The whole console command, with every verb, for tests to invoke."""

from typer.testing import CliRunner, Result

from freshet.crawler.cli.verbs import application

app = application([])


def freshet(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])
