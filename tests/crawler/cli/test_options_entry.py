"""The command ends in order even when its user changes their mind while it starts."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from freshet.crawler import cli
from freshet.crawler.cli import verbs
from freshet.crawler.cli.options import read_list
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.lab.plan_sources import read_csv
from freshet.crawler.run.terminal import replacing


def test_an_interruption_while_the_program_starts_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_arguments: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(verbs, "application", interrupted)
    # This process is not the command's, whose collector is set for good.
    monkeypatch.setattr(cli, "collect_in_steps", lambda: None)
    with pytest.raises(SystemExit) as ended:
        cli.run()
    assert (ended.value.code, capsys.readouterr().err) == (130, "freshet: interrupted\n")


FAULTY = """
import sys
from types import ModuleType

class Verbs(ModuleType):
    def __getattr__(self, name):
        import typer
        app = typer.Typer(pretty_exceptions_enable=False)

        @app.command()
        def fails() -> None:
            raise OSError("no answer from https://me:s3cr3t@h.example/?token=s3cr3t")

        return lambda arguments: app

sys.modules["freshet.crawler.cli.verbs"] = Verbs("freshet.crawler.cli.verbs")
sys.argv = ["freshet"]
from freshet.crawler.cli import run
run()
"""


def test_a_traceback_for_whoever_mends_a_fault_holds_no_secrets() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FAULTY], text=True, capture_output=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("Traceback (most recent call last):\n")
    assert ended.stderr.endswith("OSError: no answer from https://***@h.example/?token=***\n")
    assert "s3cr3t" not in ended.stderr


@pytest.mark.parametrize("lost", [">/dev/full", ">&-"])
def test_output_that_is_lost_is_one_line_and_exit_1(lost: str) -> None:
    command = f"{sys.executable} -c 'from freshet.crawler.cli import run; run()' --help {lost}"
    ended = subprocess.run(["sh", "-c", command], text=True, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr[:17], ended.stderr[-1]) == (1, "freshet: output: ", "\n")


def test_a_file_without_end_is_read_to_a_bound() -> None:
    assert len(read_list(Path("/dev/zero"))) <= 100 << 20
    with pytest.raises(CrawlError, match="/dev/zero: line 1: is not CSV"):
        read_csv(Path("/dev/zero"))
    # As output, a device is written and not replaced.
    with replacing(Path("/dev/null")) as whole:
        assert whole == Path("/dev/null")


def test_a_slow_reader_gets_all_of_a_long_output_also_of_an_unbuffered_program() -> None:
    # A process that a loop of uvloop has started is what cuts the write short.
    program = (
        "import asyncio, sys, uvloop\n"
        "from freshet.crawler.cli import write_all\n"
        "async def start():\n"
        "    await (await asyncio.create_subprocess_exec(sys.executable, '-c', '')).wait()\n"
        "write_all()\n"
        "uvloop.run(start())\n"
        "sys.stdout.write('x' * 300_000)\n"
    )
    done = subprocess.run(
        f'{shlex.join([sys.executable, "-uc", program])} | (sleep 0.5; wc -c)',
        shell=True, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) == 300_000
