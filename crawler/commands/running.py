"""Running a verb's work, coroutines on uvloop, with its errors as one line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import typer
import uvloop

from freshet.crawler.commands.console import fail
from freshet.crawler.errors import CrawlError
from freshet.storage.database import StoreError

T = TypeVar("T")

#: The exit code of a program that Ctrl-C ended, as shells give it.
INTERRUPTED: Final = 130
#: The environment variable that lets a traceback through, for whoever mends the fault.
_DEBUG = "FRESHET_DEBUG"


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Ends the program with one line where the user has to do something first."""
    try:
        yield
    except (CrawlError, StoreError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)
    except (typer.Exit, BrokenPipeError):
        # The entry point knows what to do where the reader of our output has gone.
        raise
    except Exception as error:
        if os.environ.get(_DEBUG):
            raise
        fail(f"a fault of Freshet's own: {error!r}; {_DEBUG}=1 in the environment shows where")


def run(work: Coroutine[object, object, T]) -> T:
    """The result of ``work``; errors are :func:`told_in_one_line`."""
    with (
        told_in_one_line(),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(work)
