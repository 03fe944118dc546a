"""Logs on stderr, for people or as JSON lines; both with masked secrets."""

import json
import logging
import os
import re
import sys
from pathlib import Path
from typing import Final, Literal, TextIO
from urllib.parse import unquote

import structlog
from pydantic import SecretStr
from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.processors import (
    EventRenamer,
    JSONRenderer,
    StackInfoRenderer,
    TimeStamper,
    add_log_level,
    format_exc_info,
)
from structlog.stdlib import ExtraAdder, ProcessorFormatter
from structlog.types import EventDict, Processor, WrappedLogger

from freshet.crawler.errors import CrawlError
from freshet.crawler.frontier.clock import dated
from freshet.crawler.run.terminal import err
from freshet.storage.errors import trouble

#: Logger of a daemon's reports, which are always written.
REPORTS: Final = "freshet.reports"
#: Field with the values in a line's message, for programs only.
_FIGURES: Final = "figures"
#: Name of Freshet's own logger.
_NAME: Final = "freshet"
_FIRST: Final = ("time", "level", "logger", "message")
#: Shorter secrets are not masked: they would mask everyday words.
_SHORTEST: Final = 6
#: Shorter parts of secret URLs are not masked either: paths contain everyday words.
_SHORTEST_PART: Final = 12
_hidden: Final[set[str]] = set()

#: ``auto`` is for people on a terminal, and JSON elsewhere.
LogFormat = Literal["auto", "console", "json"]


def hide(secret: str) -> None:
    """Mask a secret in all log lines from now on, unless it is shorter than 6 characters."""
    if len(secret) >= _SHORTEST:
        _hidden.add(secret)


def read_secret(name: str, secret: SecretStr) -> str:
    """Return a secret, or the value of the environment variable or file that it names.

    ``name`` is the name of the setting.

    Raises:
        CrawlError: the variable or the file cannot be read.
    """
    text = found = secret.get_secret_value()
    where, _, source = text.partition(":")
    if where == "env" and not (found := os.environ.get(source, "").strip()):
        raise CrawlError(
            f"{name}: environment variable {source} is not set; set it, or change the key"
        )
    if where == "file":
        try:
            found = Path(source).expanduser().read_text("utf-8").strip()
        except OSError as error:
            raise CrawlError(f"{name}: {trouble(source, error)}") from error
        except UnicodeDecodeError as error:
            raise CrawlError(f"{name}: {source}: it is not UTF-8; save it as UTF-8") from error
    return found


def hide_url(url: str) -> None:
    """Mask a URL, and the secrets in it, in all log lines from now on.

    Secrets are its user and password, and long parts of path and query, which errors may quote
    alone. The host of a web URL is shown; in other schemes it may hold a token.
    """
    scheme, _, rest = url.partition("://")
    place, *others = re.split("[/?#]", rest, maxsplit=1)
    user, _, host = place.rpartition("@")
    is_web = scheme.lower() in {"http", "https"}
    if is_web and not user and not any(others):
        return
    hide(url)
    hide(rest.removeprefix(f"{user}@"))  # the rest of a URL whose user was masked first
    parts = [*re.split("[/?&=#]", "".join(others)), *([] if is_web else [host])]
    for part in (*user.split(":"), *(each for each in parts if len(each) >= _SHORTEST_PART)):
        hide(part)
        hide(unquote(part))


def configure_logging(chosen: LogFormat = "auto", *, verbose: bool) -> None:
    """Make all loggers, structlog's and the standard ones, write lines of this format."""
    as_json = chosen == "json" or (chosen == "auto" and not err.is_terminal)
    rendering: list[Processor] = [
        ConsoleRenderer(
            colors=err.is_terminal, timestamp_key="time", exception_formatter=plain_traceback
        )
    ]
    if as_json:
        rendering = [EventRenamer("message"), _in_order, JSONRenderer(serializer=json.dumps)]
    shared: list[Processor] = [add_log_level, TimeStamper(fmt="iso", utc=True, key="time")]
    figures = _with_figures if as_json else _without_figures
    ending: list[Processor] = [StackInfoRenderer(), format_exc_info, figures, _mask, *rendering]
    structlog.configure(
        processors=[*shared, _name, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    formatter = ProcessorFormatter(
        processors=[ProcessorFormatter.remove_processors_meta, *ending],
        foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name, ExtraAdder()],
    )
    handler = _Handler(sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(_is_no_lost_connection)
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(handlers=[handler], level=level, force=True)
    logging.getLogger(REPORTS).setLevel(logging.INFO)


def _is_no_lost_connection(record: logging.LogRecord) -> bool:
    """Omit messages of the event loop on a lost connection.

    The request fails, and its failure is reported with the reason.
    """
    if record.name != "asyncio" or record.exc_info is None:
        return True
    error = record.exc_info[1]
    # uvloop may continue TLS on a closed connection.
    is_closed = isinstance(error, RuntimeError) and "the handler is closed" in str(error)
    is_lost = is_closed or isinstance(error, OSError)
    return not (is_lost and record.getMessage().startswith(("Fatal ", "SSL ")))


def _name(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    line.setdefault("logger", _NAME)
    return line


def _with_figures(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    figures = line.pop(_FIGURES, {})
    return {**line, **figures}


def _without_figures(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    line.pop(_FIGURES, None)
    return line


def _mask(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Mask secrets; it runs right before the renderer, when tracebacks are text."""
    from freshet.crawler.fetch.masking import masked_value  # noqa: PLC0415 - most runs log nothing

    return {name: masked_value(dated(value, name), _hidden, name) for name, value in line.items()}


def _in_order(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    first = {name: line[name] for name in _FIRST if name in line}
    return {**first, **line}


class _Handler(logging.StreamHandler[TextIO]):
    """Handler that reports a line that cannot be formatted without its content.

    It writes to the current ``sys.stderr``, which a progress display may replace.
    """

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        kind = sys.exc_info()[0]
        sys.stderr.write(
            f"freshet: a log line of {record.pathname}:{record.lineno} cannot be written: "
            f"{kind.__name__ if kind else 'unknown'}\n"
        )
