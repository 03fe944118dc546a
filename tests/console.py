"""The whole console command, with every verb, for tests to invoke."""

from freshet.crawler.cli.verbs import application

app = application([])
