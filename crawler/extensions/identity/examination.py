"""Findings of ``freshet doctor``: the key, and the names of the crawler's addresses."""

import asyncio
import socket
from collections.abc import Collection
from typing import Final, Literal, Protocol, TypeAlias

from freshet.config.settings import Settings
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.identity.agent import IdentitySettings
from freshet.crawler.run.terminal import moment

#: As ``Examining`` of crawler/run/hooks.py returns them.
_Finding: TypeAlias = tuple[str, Literal["fine", "warning", "problem"], str, str | None]
#: A key that ends so soon, and has no successor, is worth a word.
_SOON_S: Final = 7 * 86_400


class Names(Protocol):
    """Lookups of the names of addresses and the addresses of names; OSError without a result."""

    async def name(self, address: str) -> str:
        """Return the name of an address."""

    async def addresses(self, name: str) -> Collection[str]:
        """Return the addresses of a name."""


class SystemNames:
    """Asks the resolver of this machine."""

    async def name(self, address: str) -> str:
        """Return the name of an address."""
        flags = socket.NI_NAMEREQD
        return (await asyncio.get_running_loop().getnameinfo((address, 0), flags))[0]

    async def addresses(self, name: str) -> Collection[str]:
        """Return the addresses of a name."""
        found = await asyncio.get_running_loop().getaddrinfo(name, None)
        return {str(place[0]) for *_, place in found}


async def examined(settings: Settings, now: float, names: Names | None = None) -> list[_Finding]:
    """Return the findings; empty without settings of an identity."""
    said, names = settings.group(IdentitySettings), names or SystemNames()
    is_signed = said.sign or any(each.sign for each in settings.sites)
    alone = [it for it in said.addresses if it.num_addresses == 1]
    return [
        *([_key(said, now)] if is_signed else []),
        *[await _name(str(it.network_address), names) for it in alone],
    ]


def _key(said: IdentitySettings, now: float) -> _Finding:
    try:
        from freshet.crawler.extensions.identity.keys import key_file, read_keys, signing_at  # noqa: PLC0415 - an extra

        keys = read_keys(key_file(said.key))
    except CrawlError as error:
        return "key", "problem", str(error), None
    if not said.directory:
        words = "requests cannot be signed without identity.directory"
        return "key", "problem", words, "set it to the URL at which your keys are published"
    key = signing_at(keys, now)
    if key is None:
        return "key", "problem", "every key has expired", "`freshet key rotate --after 0`"
    words = f"{key.thumbprint} signs; {said.directory}"
    if key.ends is not None and key.ends < now + _SOON_S and signing_at(keys, key.ends) is None:
        words = f"{words}; it expires {moment(key.ends, now)}"
        return "key", "warning", words, "`freshet key rotate`"
    return "key", "fine", words, None


async def _name(address: str, names: Names) -> _Finding:
    """Check that the name of an address leads back to it."""
    advice = "let its PTR record name a host whose address it is: sites recognise crawlers so"
    try:
        name = await names.name(address)
    except OSError:
        return "address", "warning", f"{address} has no name in the DNS", advice
    try:
        back = await names.addresses(name)
    except OSError:
        back = ()
    if address not in back:
        return "address", "warning", f"{address} is called {name}, which leads elsewhere", advice
    return "address", "fine", f"{address} is {name}", None
