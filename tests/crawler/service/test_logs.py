"""Log lines are for people or programs, and hold no secrets in either form."""

import json
import logging
import ssl
from collections.abc import Callable
from typing import get_args

import pytest
import structlog

from freshet.crawler.cli.progress import watching
from freshet.crawler.run.logs import LogFormat, configure_logging, hide, hide_url

SECRET = "s3cr3tV4lue"
URL = f"https://me:{SECRET}@h.example/?api_key={SECRET}"


pytestmark = pytest.mark.usefixtures("logging_as_before")


def by_standard_logger() -> None:
    logging.getLogger("crawler.some").warning("fetching %s failed", URL)


def by_structlog() -> None:
    structlog.get_logger("freshet").info("observed", url=URL, headers={"Authorization": SECRET})


def fails() -> None:
    raise OSError(f"no answer from {URL}")


def by_traceback() -> None:
    try:
        fails()
    except OSError:
        logging.getLogger("crawler.some").exception("unforeseen")


def by_traceback_of_structlog() -> None:
    try:
        fails()
    except OSError:
        structlog.get_logger("freshet").exception("unforeseen", token=SECRET)


def by_fields() -> None:
    logging.getLogger("crawler.some").warning("sent", extra={"password": SECRET, "to": URL})


WAYS = [by_standard_logger, by_structlog, by_traceback, by_traceback_of_structlog, by_fields]


@pytest.mark.parametrize("chosen", get_args(LogFormat))
@pytest.mark.parametrize("write", WAYS)
def test_no_secret_comes_through(
    capsys: pytest.CaptureFixture[str], write: Callable[[], None], chosen: LogFormat
) -> None:
    configure_logging(chosen, verbose=False)
    write()
    written = capsys.readouterr().err
    assert "***" in written
    assert SECRET not in written


@pytest.mark.parametrize("write", WAYS)
def test_json_has_one_object_a_line_with_the_same_four_fields_first(
    capsys: pytest.CaptureFixture[str], write: Callable[[], None]
) -> None:
    configure_logging("json", verbose=False)
    write()
    (line,) = capsys.readouterr().err.splitlines()
    assert list(json.loads(line))[:4] == ["time", "level", "logger", "message"]


def test_a_traceback_is_a_field_of_its_line_and_for_people_lines_below(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("json", verbose=False)
    by_traceback()
    line = json.loads(capsys.readouterr().err)
    assert (line["logger"], line["level"], line["message"]) == (
        "crawler.some", "error", "unforeseen",
    )  # fmt: skip
    assert line["exception"].splitlines()[0] == "Traceback (most recent call last):"
    assert line["exception"].endswith("OSError: no answer from https://***@h.example/?api_key=***")
    configure_logging("console", verbose=False)
    by_traceback()
    assert "\nOSError: no answer from https://***@h.example/" in capsys.readouterr().err


def test_fields_stand_beside_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json", verbose=False)
    by_fields()
    line = json.loads(capsys.readouterr().err)
    assert (line["password"], line["to"]) == ("***", "https://***@h.example/?api_key=***")


def test_what_is_hidden_needs_no_sign(capsys: pytest.CaptureFixture[str]) -> None:
    hide("9f8e7d6c")
    hide("the")  # too short: it would mask everyday words
    configure_logging("console", verbose=False)
    logging.getLogger("crawler.some").warning("posting to the https://h.example/in/9f8e7d6c")
    written = capsys.readouterr().err
    assert "posting to the https://h.example/in/***" in written


def test_a_line_that_cannot_be_written_tells_nothing_of_its_contents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("json", verbose=False)
    logging.getLogger("crawler.some").warning("%d requests", SECRET)
    written = capsys.readouterr().err
    assert "test_logs.py" in written
    assert "cannot be written: TypeError" in written
    assert SECRET not in written


def test_json_replaces_the_lines_that_rewrite_themselves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("freshet.crawler.cli.progress.err._force_terminal", True)
    with watching(quiet=False, verbose=False, log_format="json"):
        by_standard_logger()
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["level"] == "warning"


@pytest.mark.parametrize(
    ("url", "line", "shown"),
    [
        ("https://", URL, "https://***@h.example/?api_key=***"),
        (
            "https://hooks.example/",
            "https://hooks.example/ is down",
            "https://hooks.example/ is down",
        ),
        ("https://h.example/short", "/srv/short: https://h.example/short", "/srv/short: ***"),
        ("https://h.example/a/t0ken-of-some-length", "no t0ken-of-some-length", "no ***"),
        ("https://n%40me-it:w%24rd-it@h.example/", "w$rd-it of n@me-it", "*** of ***"),
        ("https://me:word@h.example/x", "https://me:word@h.example/x", "https://***@***"),
        ("tgram://987654:t0ken/chat", "t0ken 987654:t0ken", "t0ken ***"),
    ],
)
def test_of_a_secret_url_all_is_hidden_that_others_may_quote(
    capsys: pytest.CaptureFixture[str], url: str, line: str, shown: str
) -> None:
    hide_url(url)
    configure_logging("json", verbose=False)
    logging.getLogger("crawler.some").warning("%s", line)
    assert json.loads(capsys.readouterr().err)["message"] == shown


_CLOSED = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("Fatal error on SSL protocol", RuntimeError(_CLOSED)),
        ("Fatal error on SSL protocol", ConnectionResetError()),
        ("Fatal error on SSL protocol", ssl.SSLError(1, "bad record mac")),
        ("Fatal error on transport TCPTransport", RuntimeError(_CLOSED)),
        ("Fatal error on transport", OSError(110, "timed out")),
        ("Fatal read error on socket transport", OSError(113, "no route to host")),
        ("Fatal write error on socket transport", OSError(113, "no route to host")),
        ("SSL handshake failed", ssl.SSLError(1, "unexpected eof")),
        ("SSL error in data received", ssl.SSLError(1, "wrong version number")),
    ],
)
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_lost_connection_is_no_line_of_the_event_loop(
    message: str, error: Exception, log_format: LogFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(log_format, verbose=True)
    logging.getLogger("asyncio").error("%s", f"{message}\ntransport: <…>", exc_info=error)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "message", "error"),
    [
        ("asyncio", "Fatal error on SSL protocol", KeyError("ours")),
        ("asyncio", "Fatal error on SSL protocol", RuntimeError("ours")),
        ("asyncio", "Fatal error: protocol.buffer_updated() call failed.", IndexError("ours")),
        ("asyncio", "Task exception was never retrieved", OSError("ours")),
        ("freshet", "Fatal error on SSL protocol", OSError("ours")),
    ],
)
def test_a_fault_of_ours_is_a_line(
    name: str, message: str, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("json", verbose=False)
    logging.getLogger(name).error(message, exc_info=error)
    assert "ours" in capsys.readouterr().err
