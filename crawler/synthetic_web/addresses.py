"""Under which URLs the sites of a web are reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from freshet.crawler.synthetic_web.content import Place


def authority(host: str, port: int) -> str:
    """Host and port as URLs and Host headers write them for plain http."""
    return host if port == 80 else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The authority of each site; plain http."""

    authorities: Mapping[str, str]
    _names: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = {netloc: name for name, netloc in self.authorities.items()}
        object.__setattr__(self, "_names", names)

    @classmethod
    def named(cls, names: Iterable[str], port: int = 80) -> Addresses:
        """Each site under ``NAME.localhost``, which is loopback everywhere (RFC 6761)."""
        return cls({name: authority(f"{name}.localhost", port) for name in names})

    def origin(self, name: str) -> str:
        """``http://HOST:PORT`` of a site.

        Raises:
            KeyError: if there is no such site.
        """
        return f"http://{self.authorities[name]}"

    def url(self, place: Place) -> str:
        """The URL of a place.

        Raises:
            KeyError: if there is no such site.
        """
        return self.origin(place.host) + place.target

    def name(self, netloc: str) -> str | None:
        """The site that a Host header asks for."""
        return self._names.get(netloc.lower())

    def place(self, url: str) -> Place | None:
        """The place of an http URL, without its fragment; None outside this web."""
        scheme, _, rest = url.partition("#")[0].partition("://")
        end = min((rest.find(mark) for mark in "/?" if mark in rest), default=len(rest))
        name = self.name(rest[:end])
        if name is None or scheme.lower() != "http":
            return None
        target = rest[end:]
        return Place(name, target if target.startswith("/") else f"/{target}")
