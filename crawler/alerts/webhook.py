"""Webhooks: JSON posted to a URL, named and signed by the Standard Webhooks specification."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver

from freshet.crawler.alerts.delivery import Answer, Dispatch, Outcome
from freshet.crawler.alerts.signing import signature
from freshet.crawler.network.addresses import AddressGuard
from freshet.crawler.network.responses import retry_after_s
from freshet.crawler.network.transport import Unfetched, guarded_connector, own_failures

#: Answers that are about the message: sent again, it would be answered alike.
_ABOUT_THE_MESSAGE: Final = frozenset({400, 410, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class Hook:
    """Where to post, and with which key to sign (None: not at all)."""

    url: str
    key: bytes | None
    timeout_s: float


class Webhook:
    """Posts to one URL, over connections of its own.

    Redirects are not followed, and of an answer only status and headers are read. A new
    connection is made for each message: what breaks on a stale one would have to be sent twice.
    """

    def __init__(
        self, hook: Hook, guard: AddressGuard, resolver: AbstractResolver, user_agent: str
    ) -> None:
        self._hook = hook
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(guard, resolver, None),
            headers={"User-Agent": user_agent, "Connection": "close"},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def deliver(self, dispatch: Dispatch, now: float) -> Answer:
        """As :class:`~freshet.crawler.alerts.delivery.Receiver` says."""
        try:
            async with asyncio.timeout(self._hook.timeout_s):
                with own_failures():
                    return await self._post(dispatch, now)
        except TimeoutError:
            return Answer(Outcome.FAILED, f"no answer within {self._hook.timeout_s:g} s")
        except (Unfetched, OSError) as error:
            said = error.detail if isinstance(error, Unfetched) else str(error) or repr(error)
            return Answer(Outcome.FAILED, said)

    async def _post(self, dispatch: Dispatch, now: float) -> Answer:
        body = dispatch.body.encode()
        async with self._session.post(
            self._hook.url, data=body, headers=self._headers(dispatch, body, now),
            allow_redirects=False,
        ) as response:  # fmt: skip
            status, headers = response.status, response.raw_headers
        if 200 <= status < 300:
            return Answer(Outcome.TAKEN)
        said = f"HTTP {status} {response.reason or ''}".rstrip()
        if status in _ABOUT_THE_MESSAGE:
            return Answer(Outcome.REFUSED, said)
        return Answer(Outcome.FAILED, said, retry_after_s(headers, now))

    def _headers(self, dispatch: Dispatch, body: bytes, now: float) -> dict[str, str]:
        timestamp = int(now)
        headers = {
            "Content-Type": "application/json",
            "webhook-id": dispatch.key,
            "webhook-timestamp": str(timestamp),
            "Idempotency-Key": dispatch.key,
        }
        if self._hook.key is not None:
            signed = signature(self._hook.key, dispatch.key, timestamp, body)
            headers["webhook-signature"] = signed
        return headers

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()
