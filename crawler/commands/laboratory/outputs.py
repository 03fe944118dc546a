"""Where an answer is written to: a page, tables, or neither."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freshet.crawler import __version__
from freshet.crawler.commands.console import err, fail, say
from freshet.crawler.commands.counterfactual import Answer
from freshet.crawler.commands.laboratory import tables
from freshet.crawler.commands.laboratory.page import Origin, page_of
from freshet.crawler.commands.replacing import replacing


@dataclass(frozen=True, slots=True)
class Outputs:
    """A file for the page and a folder for the tables, where they are wanted."""

    html: Path | None
    parquet: Path | None

    def __bool__(self) -> bool:
        return self.html is not None or self.parquet is not None

    def check(self, sources: Sequence[Path]) -> None:
        """Find out before the work whether they can be written; ends the program if not.

        Raises:
            UnusableFile: the tables cannot be written.
        """
        if self.html is not None:
            _check_file(self.html, sources)
        if self.parquet is not None:
            tables.check_folder(self.parquet)

    def write(self, answer: Answer, config: Path | None) -> None:
        """Write them, each whole or not at all, and say so.

        Raises:
            UnusableFile: the tables cannot be written.
        """
        if self.html is not None:
            origin = Origin(self._command(answer, config), __version__, time.time())
            with err.status("Writing the page"), replacing(self.html) as whole:
                whole.write_text(page_of(answer, origin), "utf-8")
            say("written:", "green", str(self.html))
        if self.parquet is not None:
            with err.status("Writing the tables"):
                tables.write_tables(answer, self.parquet)
            say("written:", "green", f"{self.parquet} ({', '.join(tables.TABLES)})")

    def _command(self, answer: Answer, config: Path | None) -> str:
        """What asks the same store the same again."""
        question = answer.question
        words = ["freshet", "replay", str(question.db)]
        for policy in question.policies:
            words += ["--policy", policy]
        for budget in question.budgets:
            words += ["--budget", f"{budget:.12g}/day"]
        words += ["--shown", f"{question.shown:g}"]
        for option, path in (
            ("--config", config), ("--html", self.html), ("--parquet", self.parquet)
        ):  # fmt: skip
            words += [option, str(path)] if path is not None else []
        return shlex.join(words)


def _check_file(file: Path, sources: Sequence[Path]) -> None:
    if file.exists() and not file.is_file():
        fail(f"--html {file}: it is no file, and is not replaced", 2)
    if not file.absolute().parent.is_dir():
        fail(f"--html {file}: there is no folder {file.parent}", 2)
    if any(file.exists() and each.exists() and file.samefile(each) for each in sources):
        fail(f"--html {file}: would replace what is asked", 2)
