"""A verb ends with its result or with one line, never with a traceback."""

import pytest
import typer

from freshet.crawler.errors import CrawlError
from freshet.crawler.run import terminal
from freshet.storage.errors import StoreError


async def work(error: BaseException | None = None) -> str:
    if error is not None:
        raise error
    return "done"


def test_the_result_is_passed_on() -> None:
    assert terminal.run(work()) == "done"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (CrawlError("no contact"), 1, "freshet: no contact"),
        (StoreError("crawl.db: the disk is full"), 1, "freshet: crawl.db: the disk is full"),
        (KeyboardInterrupt(), 130, "freshet: interrupted"),
        (ZeroDivisionError("surprise"), 1, "an internal error: ZeroDivisionError"),
    ],
)
def test_an_error_is_one_line(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, words: str
) -> None:
    with pytest.raises(typer.Exit) as ended:
        terminal.run(work(error))
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.exit_code == code
    assert words in line


def test_an_ending_that_the_work_chose_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        terminal.run(work(typer.Exit(2)))
    assert (ended.value.exit_code, capsys.readouterr().err) == (2, "")


def test_whoever_mends_a_fault_can_see_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRESHET_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        terminal.run(work(ZeroDivisionError()))
