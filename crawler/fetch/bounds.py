"""Bounds on what a site can make the crawler do, beside those that are settings.

No honest site comes near them. What goes beyond one is refused with a reason that the store keeps,
left out, or waits; one line in the log says so, and ``freshet status`` counts it.
"""

import logging
import resource
from collections import Counter, OrderedDict
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(OrderedDict[K, V]):
    """A mapping of at most ``room`` entries; writing one more drops the least recently used one.

    Writing an entry and :meth:`use` count as a use, ``get`` and ``[]`` do not.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def __setitem__(self, key: K, value: V) -> None:
        if key in self:
            self.move_to_end(key)
        super().__setitem__(key, value)
        if len(self) > self._room:
            self.popitem(last=False)

    def use(self, key: K) -> V | None:
        """Return the value of a key, or None, and count a use."""
        if key in self:
            self.move_to_end(key)
        return self.get(key)


log = logging.getLogger(__name__)

#: How often each bound has held something back since the start of this process.
met: Final[Counter[str]] = Counter()
_said: Final = LruCache[tuple[str, str], bool](1_024)


def meet(bound: str, where: str = "") -> None:
    """Count that a bound holds something back, and say so once for each place."""
    met[bound] += 1
    if (bound, where) not in _said:
        _said[bound, where] = True
        log.warning("a bound is met: %s", f"{bound} ({where})" if where else bound)


#: Interim responses (1xx) before the final one; RFC 9110, section 15.2, sets no limit.
INTERIM_RESPONSES: Final = 16
#: Members of a gzip stream; each costs time, however little it holds.
GZIP_MEMBERS: Final = 10_000
#: Characters of a URL that is requested. Servers take 8,000 octets (RFC 9110, section 4.1).
URL_CHARS: Final = 8_192
#: Characters of a validator that is sent back.
VALIDATOR_CHARS: Final = 1_024
#: Bytes of bodies in memory over all requests, read ahead, on the wire and decoded. Beyond them a
#: request waits before it reads on, except for bodies of less than 64 KiB and the one that began
#: first. With these beginnings, and with what is made of the longest body, it is 128 MiB in all.
HELD_BYTES: Final = 16 << 20
#: Bytes of pages that were slow to parse and wait to be parsed once more, which are held beside
#: those; each counts as a megabyte at least. Beyond them such a page is to be requested again.
SLOW_BYTES: Final = 16 << 20
#: Bytes of parsed robots.txt in memory. One of 500 kB takes up to 19 MB, one of 3 kB takes 40 kB.
ROBOTS_BYTES: Final = 64 << 20
#: Bytes that wait in the kernel for one connection, which does not read on without memory.
RECEIVE_BYTES: Final = 64 << 10
#: Sitemaps of a host that its robots.txt names, and that sitemaps name in one run; those out of
#: scope that a robots.txt names; the characters of their URLs.
SITEMAPS: Final = 1_000
FOREIGN_SITEMAPS: Final = 10
SITEMAP_URL_CHARS: Final = 2_048
#: Due URLs of a host beyond which a crawl reads none of its sitemaps, which may have 50,000 each.
LISTED_URLS: Final = 100_000
#: Requisites of archived pages that wait, and their bytes for one page.
REQUISITES_WAITING: Final = 20_000
REQUISITE_BYTES: Final = 64 << 20
#: Bytes that are read of a line of a site list.
LINE_BYTES: Final = 256 << 10
#: Elements inside each other in a sitemap or an outline; the protocol of sitemaps has three levels.
XML_LEVELS: Final = 64
#: Ports of services that are no web servers (Fetch standard, "bad port").
BAD_PORTS: Final = frozenset(
    {
        *(0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95),
        *(101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161),
        *(179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563),
        *(587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060),
        *(5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
    }
)

#: Share of the requests at a time that go to hosts on domains of no seed.
_STRANGERS: Final = 0.125
_FILES: Final = 65_536
_OTHER_FILES: Final = 64


def open_files() -> int:
    """Let this process open as many files as it may allow itself; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES and soft != hard:
        soft = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def connections(wanted: int = 256) -> int:
    """Return how many connections may be in use; as many more may be idle.

    Some of the files that may be open are for other things.
    """
    return max(1, min(wanted, (open_files() - _OTHER_FILES) // 2))


def share(exchanges: int, domains: int = 0) -> int:
    """Return how many requests at a time may go to a seed's domain, or to all others together."""
    most = connections(exchanges)
    few = max(1, int(_STRANGERS * most))
    return max(few, (most - few) // domains) if domains else few
