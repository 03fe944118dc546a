"""The areas of a site: its first directories, by which it is rebuilt or moved."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from freshet.scheduler.estimate.site_clock import AREAS
from freshet.scheduler.sources import Rows

_DIGITS = re.compile(r"\d+")


class Areas:
    """Numbers areas as their first pages come; what comes after the last number shares it.

    They are the directories below that of the first page of a site, which is where its crawl
    began. Fed the same URLs in the same order, it gives the same numbers.
    """

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        self._codes: dict[str, dict[str, int]] = {}

    def codes(self, urls: Sequence[str]) -> Rows:
        """(m,), the area of each page within its site."""
        return np.array([self._code(url) for url in urls], np.intp)

    def _code(self, url: str) -> int:
        scheme, _, host, path = url.split("?", maxsplit=1)[0].split("/", 3)
        origin = f"{scheme}//{host}"
        root = self._roots.setdefault(origin, path[: path.rfind("/") + 1])
        inside, slash, _ = path.removeprefix(root).partition("/")
        area = _DIGITS.sub("#", inside) if slash and path.startswith(root) else ""
        areas = self._codes.setdefault(origin, {})
        return areas.setdefault(area, min(len(areas), AREAS - 1))
