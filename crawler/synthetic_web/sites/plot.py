"""The ground on which a site is built, and what all builders build with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from freshet.crawler.synthetic_web.chance import DAY_S, generator, poisson_times
from freshet.crawler.synthetic_web.content import Form, Link, Place, Revision
from freshet.crawler.synthetic_web.edits import DATE_MIX, FIGURE_MIX, PROSE_MIX, plan
from freshet.crawler.synthetic_web.histories import Story
from freshet.crawler.synthetic_web.languages import ENGLISH, Language
from freshet.crawler.synthetic_web.site import Frame

#: A robots.txt that forbids nothing and names the sitemap.
OPEN_ROBOTS = "User-agent: *\nDisallow:\n\nSitemap: {origin}/sitemap.xml\n"

#: What a rebuild of a whole site touches: nearly always the stamp in the footer alone.
_FRAME_FORMS = (Form.FOOTER, Form.FOOTER, Form.FOOTER, Form.ADVERT, Form.NAVIGATION)


@dataclass(frozen=True, slots=True)
class Plot:
    """A site's name, seed and size, and the time in which it changes (Unix seconds).

    ``pages`` is roughly the number of its pages at the start.
    """

    name: str
    seed: int
    pages: int
    start_at: float
    end_at: float

    def rng(self, *key: object) -> Random:
        """The generator for a part of the site."""
        return generator(self.seed, self.name, *key)

    def place(self, target: str) -> Place:
        """A place on the site."""
        return Place(self.name, target)

    def link(self, text: str, target: str, *, rel: str = "", note: str = "") -> Link:
        """A plain link within the site."""
        return Link(text, self.place(target), rel=rel, note=note)

    def earlier(self, *key: object) -> float:
        """A whole second in the two months before the start."""
        return self.start_at - 1 - self.rng(*key, "earlier").randrange(60 * int(DAY_S))

    def later(self, *key: object) -> float:
        """A whole second in the first quarter of the time in which the site changes."""
        quarter = int(self.end_at - self.start_at) // 4
        return self.start_at + 1 + self.rng(*key, "later").randrange(quarter)

    def story(
        self,
        key: str,
        *,
        language: Language = ENGLISH,
        title: str | None = None,
        paragraphs: int = 5,
        figure: bool = False,
        dated: bool = False,
        links: Sequence[Link] = (),
        edits: tuple[Revision, ...] = (),
    ) -> Story:
        """Prose that is drawn from the key."""
        return Story(
            (self.seed, self.name, key),
            language,
            edits,
            title=title,
            paragraphs=paragraphs,
            figure=figure,
            dated=dated,
            links=links,
        )

    def edits(
        self,
        key: str,
        per_day: float,
        *,
        since: float | None = None,
        until: float | None = None,
        figure: bool = False,
        dated: bool = False,
    ) -> tuple[Revision, ...]:
        """Edits at Poisson times, for a story of five paragraphs."""
        rng = self.rng(key, "edits")
        start_at = self.start_at if since is None else max(since, self.start_at)
        end_at = self.end_at if until is None else min(until, self.end_at)
        times = poisson_times(rng, per_day, start_at, end_at)
        mix = FIGURE_MIX if figure else DATE_MIX if dated else PROSE_MIX
        return plan(rng, times, mix, 5)

    def frame(
        self, rebuilds_per_day: float, *links: Link, forms: Sequence[Form] = _FRAME_FORMS
    ) -> Frame:
        """A frame with these links that is rebuilt at Poisson times, in one of these ways."""
        rng = self.rng("frame")
        times = poisson_times(rng, rebuilds_per_day, self.start_at, self.end_at)
        return Frame(links, tuple(Revision(at, rng.choice(forms)) for at in times))
