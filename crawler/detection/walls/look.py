"""What is looked at when a page may be a wall, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from freshet.crawler.detection.sketch import Sketch, resemblance
from freshet.crawler.detection.walls.signs import PageSigns
from freshet.crawler.parsing.blocks import Blocks

#: Texts that resemble one another less are no versions of one text.
_ANOTHER: Final = 0.25


class WallKind(StrEnum):
    """What stands in the place of the content."""

    SOFT_404 = "soft_404"
    ERROR_PAGE = "error_page"
    LOGIN_WALL = "login_wall"
    CONSENT_WALL = "consent_wall"
    CAPTCHA = "captcha"
    RATE_LIMITED_PAGE = "rate_limited_page"


@dataclass(frozen=True, slots=True)
class Wall:
    """The judgement that a page is no content; ``why`` is a sentence for people.

    ``earlier`` are URLs that showed the same page earlier in this run and were taken for
    content: it is known better now.
    """

    kind: WallKind
    why: str
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageLook:
    """A page that was answered with 200.

    ``blocks`` and ``sketch`` are of its main text. ``had_content`` says whether an earlier
    visit of this URL found content of which this is no edited version, see
    :func:`is_another_text` (None: not known); ``retry_after`` whether a Retry-After header
    came with the answer.
    """

    url: str
    title: str | None
    blocks: Blocks
    sketch: Sketch
    signs: PageSigns
    had_content: bool | None = None
    retry_after: bool = False


def is_another_text(old: Sketch, new: Sketch) -> bool:
    """Whether a page that had one text has another now, not an edited one."""
    # A bool of Python's own: it is asked whether this is True, False or None.
    return bool(resemblance(old, new).value < _ANOTHER)
