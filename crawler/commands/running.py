"""Running a verb's coroutine on uvloop, with its errors as one line."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import uvloop

from crawler.commands.console import fail
from crawler.errors import CrawlError
from storage.errors import StoreError

T = TypeVar("T")


def run(work: Coroutine[object, object, T]) -> T:
    """The result of ``work``; ends the program where the user has to do something first."""
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work)
    except (CrawlError, StoreError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted", 130)
