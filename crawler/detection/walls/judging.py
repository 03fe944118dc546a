"""When the evidence is enough: the thresholds, alone, beside like pages, and on a return.

Every rule bounds the page's own words by what speaks for a wall: the more it says of itself,
the more must speak against it. The numbers were found on the
107 walls and 51 pages about walls of the benchmark's tuned set.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from freshet.crawler.detection.walls.weighing import Weighed


class Standing(Enum):
    """What is known besides the page.

    Values: the least sum of cues, the own words allowed for each of it and besides, and how
    much of what says that the page is about such things is held against it.
    """

    #: Nothing.
    ALONE = (4, 6, -3, 99)
    #: This URL had content before that was quite another text.
    RETURNING = (3, 7, 5, 99)
    #: Another URL of the host has nearly the same page.
    TWIN = (1, 8, 20, 3)
    #: Several have.
    LIKE_MANY = (2, 15, 30, 1)


#: No page with more words of its own is a wall by its words.
_MOST_OWN_WORDS: Final = 120
#: Words allowed besides where a short title says what the page is: other text is beside it.
_TITLED: Final = 20
#: The sum of cues of a page of whom only the title says what it is.
_TITLE_SAYS: Final = 3


def is_enough(weighed: Weighed, standing: Standing) -> bool:
    """Whether the page is a wall of that kind."""
    least, each, beside, most_about = standing.value
    cues = weighed.score - min(weighed.about, most_about)
    titled = _TITLED if weighed.titled and not weighed.about else 0
    return cues >= (min(least, _TITLE_SAYS) if titled else least) and weighed.own_words <= min(
        _MOST_OWN_WORDS, each * cues + beside + titled
    )
