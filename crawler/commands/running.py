"""Running a verb's coroutine on uvloop, with its errors as one line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import TypeVar

import typer
import uvloop

from crawler.commands.console import fail
from crawler.errors import CrawlError
from storage.errors import StoreError

T = TypeVar("T")

#: The environment variable that lets a traceback through, for whoever mends the fault.
_DEBUG = "FRESHET_DEBUG"


def run(work: Coroutine[object, object, T]) -> T:
    """The result of ``work``; ends the program where the user has to do something first."""
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work)
    except (CrawlError, StoreError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted", 130)
    except typer.Exit:
        raise
    except Exception as error:
        if os.environ.get(_DEBUG):
            raise
        fail(f"a fault of Freshet's own: {error!r}; {_DEBUG}=1 in the environment shows where")
