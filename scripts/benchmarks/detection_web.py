"""A labelled web: boards, with frame and noise amid the content, beside ordinary sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from enum import StrEnum
from html import escape
from typing import Final

from freshet.crawler.extensions.lab.synthetic_web.content import ENGLISH, Form, generator
from freshet.crawler.extensions.lab.synthetic_web.site import Resource, Skin, SyntheticSite
from freshet.crawler.extensions.lab.synthetic_web.sites import OPEN_ROBOTS, SITEMAPS, Plot
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, WebSpec, mixed


class Clutter(StrEnum):
    """The noise amid the content of a board, as markup."""

    STAMPS = (
        "<p>It is {rendered_at} here, and {visitors} people came by.</p>"
        "<p>Your reference is {token}.</p>\n"
    )
    ADVERTS = "<div><section><p>{advert}</p></section></div>\n"
    VARIANTS = "<blockquote>{variant}</blockquote>\n"


#: Edits per day of the notices of a board, in turn.
_RATES_PER_DAY: Final = (0.3, 0.05, 0.0, 0.15, 0.02)
_FRAME_FORMS: Final[tuple[Form, ...]] = ("footer", "advert", "banner", "rebuild")


def board(plot: Plot, clutter: Collection[Clutter]) -> SyntheticSite:
    """Build notices with frame and noise amid the content, without telling names.

    A third of them states a price, a third a date.
    """
    targets = [f"/notice/{n}" for n in range(1, plot.pages)]
    resources: dict[str, Resource] = dict(SITEMAPS)
    for n, target in enumerate(targets):
        rate = _RATES_PER_DAY[n % len(_RATES_PER_DAY)]
        resources[target] = plot.page(target, rate, figure=n % 3 == 0, dated=n % 3 == 1)
    links = [plot.link(target.strip("/"), target) for target in targets]
    resources["/"] = plot.page("home", title="Notices", links=links)
    return SyntheticSite(
        name=plot.name,
        title=f"Board of {plot.name}",
        resources=resources,
        skin=_cluttered(plot.name, frozenset(clutter)),
        validation="none",
        frame=plot.frame(0.15, forms=_FRAME_FORMS),
        robots=OPEN_ROBOTS,
    )


def _cluttered(site: str, clutter: Collection[Clutter]) -> Skin:
    """Mix frame and noise into the content; a rebuild renames the wrappers."""

    def skin(edited: Counter[Form]) -> str:
        rng = generator(site, "rebuild", edited["rebuild"])
        name, slogan = escape(ENGLISH.word(rng)), escape(ENGLISH.sentence(rng))
        notice = ""
        if edited["banner"] % 2:
            rng = generator(site, "notice", edited["banner"])
            notice = f"<div><p>{escape(ENGLISH.sentence(rng))}</p></div>\n"
        adverts, variants, stamps = (
            kind if kind in clutter else ""
            for kind in (Clutter.ADVERTS, Clutter.VARIANTS, Clutter.STAMPS)
        )
        return (
            f'<div class="{name}-page"><div><p>{slogan}</p></div>\n{notice}{adverts}'
            f'<div class="{name}-story">\n{{main}}{variants}{stamps}'
            "</div><div><p>{title}, part {revision}.</p></div></div>\n"
        )

    return skin


def labelled(spec: WebSpec) -> SyntheticWeb:
    """Make the mixed web and boards beside it: each kind of noise alone, all, and none."""
    boards = [
        board(spec.plot(f"board-{name}"), clutter)
        for name, clutter in (
            ("stamps", {Clutter.STAMPS}),
            ("adverts", {Clutter.ADVERTS}),
            ("variants", {Clutter.VARIANTS}),
            ("all", set(Clutter)),
            ("none", set[Clutter]()),
        )
    ]
    return spec.web([*mixed(spec).sites.values(), *boards])
