"""Messages for people through apprise (an extra): mail, chats, telephones, by its URLs."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from freshet.crawler.alerts.delivery import Answer, Dispatch, Outcome

#: Items of a digest that a person is shown.
_SHOWN: Final = 50
_LONGEST: Final = 300


class ApprisedError(Exception):
    """A service cannot be used as asked; the message is one line without the URL."""


class Apprised:
    """One service, asked in a thread of its own, since apprise blocks.

    A thread cannot be ended: one that has not come back in time is left alone, and until it has,
    every delivery fails. It never holds up the end of the program.

    Raises:
        ApprisedError: the extra is not installed, or apprise does not know the URL.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        # What it logs may quote the URL, and with it passwords.
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
        self._service = _service(url)
        self._timeout_s = timeout_s
        self._thread: threading.Thread | None = None

    async def deliver(self, dispatch: Dispatch, now: float) -> Answer:
        """As :class:`~freshet.crawler.alerts.delivery.Receiver` says."""
        if self._thread is not None and self._thread.is_alive():
            return Answer(Outcome.FAILED, "the service has not come back from the last message")
        title, body = in_words(json.loads(dispatch.body))
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Answer] = loop.create_future()

        def work() -> None:
            try:
                taken = self._service.notify(body=body, title=title, body_format="text")
                answer = Answer(Outcome.TAKEN)
                if not taken:
                    answer = Answer(Outcome.FAILED, "the service did not take it")
            except Exception as error:  # noqa: BLE001 - of some hundred services, told as it is
                answer = Answer(Outcome.FAILED, f"the service failed: {type(error).__name__}")
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, answered, answer)

        self._thread = threading.Thread(target=work, name="apprise", daemon=True)
        self._thread.start()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await answered
        except TimeoutError:
            return Answer(Outcome.FAILED, f"no answer within {self._timeout_s:g} s")

    async def close(self) -> None:
        """Nothing is open."""


def _service(url: str) -> Any:
    with warnings.catch_warnings():
        # What its plug-ins import may be on its way out of Python; that is not for our user.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            service = import_module("apprise").Apprise()
        except ModuleNotFoundError as error:
            raise ApprisedError(
                "only http and https URLs without the extra: pipx install 'freshet[apprise]'"
            ) from error
        if not service.add(url):
            raise ApprisedError("apprise does not know this kind of URL, or something is missing")
        return service


def _settle(answered: asyncio.Future[Answer], answer: Answer) -> None:
    if not answered.done():
        answered.set_result(answer)


def in_words(message: Mapping[str, Any]) -> tuple[str, str]:
    """The title and the text of a message for people."""
    data = message["data"]
    if message["type"] == "digest":
        changes: Sequence[Mapping[str, Any]] = data["changes"]
        lines = [_line(change) for change in changes[:_SHOWN]]
        if len(changes) > _SHOWN:
            lines.append(f"… and {len(changes) - _SHOWN:,} more")
        return f"{data['rule']}: {len(changes):,} pages, {data['from']} to {data['to']}", "\n".join(
            lines
        )
    if message["type"] == "test":
        return f"{data['rule']}: a test", data["summary"]
    return f"{data['rule']}: {data['kind']} {data['title'] or data['url']}", _line(data)


def _line(data: Mapping[str, Any]) -> str:
    words = f"{data['kind']}: {data['url']}"
    return f"{words}\n  {data['summary'][:_LONGEST]}" if data["summary"] else words
