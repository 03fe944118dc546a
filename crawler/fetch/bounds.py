"""Limits on what a site can make the crawler do, in addition to those in the settings.

No honest site reaches them. Anything beyond a limit is refused with a reason that the store keeps,
omitted, or delayed. The log has one line for each place, and ``freshet status`` counts them.
"""

import logging
import resource
from collections import Counter, OrderedDict
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(OrderedDict[K, V]):
    """A mapping with at most ``room`` entries; a further one drops the least recently used entry.

    Writing an entry and :meth:`use` count as use, ``get`` and ``[]`` do not.
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
        """Return the value of a key, or None, and count it as used."""
        if key in self:
            self.move_to_end(key)
        return self.get(key)


log = logging.getLogger(__name__)

#: How often each limit was reached since the start of this process.
met: Final[Counter[str]] = Counter()
_said: Final = LruCache[tuple[str, str], bool](1_024)


def meet(bound: str, where: str = "") -> None:
    """Record that a limit was reached; log it once for each place."""
    met[bound] += 1
    if (bound, where) not in _said:
        _said[bound, where] = True
        log.warning("a limit is reached: %s", f"{bound} ({where})" if where else bound)


#: Interim responses (1xx) before the final one; RFC 9110, section 15.2, sets no limit.
INTERIM_RESPONSES: Final = 16
#: Members of a gzip stream; each costs time, even an empty one.
GZIP_MEMBERS: Final = 10_000
#: Characters of a requested URL. Servers should accept 8,000 octets (RFC 9110, section 4.1).
URL_CHARS: Final = 8_192
#: Characters of a validator that is sent back.
VALIDATOR_CHARS: Final = 1_024
#: Bytes of bodies in memory over all requests, counting those read ahead, on the wire and decoded.
#: Beyond it, requests wait before they read on, except for bodies of less than 64 KiB and the
#: oldest request. With these, and with the parsed form of the longest body, it is 128 MiB in all.
HELD_BYTES: Final = 16 << 20
#: Bytes of pages that were slow to parse and wait for a second attempt, in addition to the above;
#: each page counts as at least a megabyte. Beyond it, such a page is requested again.
SLOW_BYTES: Final = 16 << 20
#: Bytes of parsed robots.txt in memory. A file of 500 kB takes up to 19 MB, one of 3 kB takes 40
#: kB.
ROBOTS_BYTES: Final = 64 << 20
#: Bytes that wait in the kernel for one connection, which stops reading when memory is short.
RECEIVE_BYTES: Final = 64 << 10
#: Sitemaps of a host that its robots.txt names, and sitemaps that its sitemaps name in one run;
#: sitemaps out of scope that a robots.txt names; characters of their URLs.
SITEMAPS: Final = 1_000
FOREIGN_SITEMAPS: Final = 10
SITEMAP_URL_CHARS: Final = 2_048
#: A host with more due URLs than this gets no more sitemaps read; each may have 50,000.
LISTED_URLS: Final = 100_000
#: Waiting resources of archived pages, and bytes of resources per page.
REQUISITES_WAITING: Final = 20_000
REQUISITE_BYTES: Final = 64 << 20
#: Bytes read of a line of a site list.
LINE_BYTES: Final = 256 << 10
#: Nested elements in a sitemap or OPML file; the sitemaps protocol has three levels.
XML_LEVELS: Final = 64
#: Ports of services other than web servers (Fetch standard, "bad port").
BAD_PORTS: Final = frozenset(
    {
        *(0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95),
        *(101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161),
        *(179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563),
        *(587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060),
        *(5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
    }
)

#: Share of concurrent requests for hosts on domains without a seed.
_STRANGERS: Final = 0.125
_FILES: Final = 65_536
_OTHER_FILES: Final = 64


def open_files() -> int:
    """Raise this process's limit of open files as far as allowed; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES and soft != hard:
        soft = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def connections(wanted: int = 256) -> int:
    """Return how many connections may be in use; the same number may be idle.

    Some file handles are reserved for other purposes.
    """
    return max(1, min(wanted, (open_files() - _OTHER_FILES) // 2))


def share(exchanges: int, domains: int = 0) -> int:
    """Return how many requests at a time may go to a seed's domain, or to all others together."""
    most = connections(exchanges)
    few = max(1, int(_STRANGERS * most))
    return max(few, (most - few) // domains) if domains else few
