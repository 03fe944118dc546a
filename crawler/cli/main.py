"""The console command ``freshet`` with every verb."""

from __future__ import annotations

from freshet.crawler.cli.verbs import application

app = application([])
