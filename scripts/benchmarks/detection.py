"""How often a verdict on a page is right, by the labels of the synthetic web that made it.

A web with every kind of noise (tests never use its seed) is crawled again and again while it
changes; each verdict of the store is compared with what the generator says was edited since
the page was last seen. Prints one JSON object: precision and recall of significant changes,
the share of one-word edits found, the share of false changes where only the frame was
rebuilt, and the confusion by kind of edit; ``at_once`` are the verdicts as they were made,
``amended`` as the store sees them at the end. With ``--recorded``, the agreement with the
labels of recorded sites, too.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S, Form, SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.site import Addresses
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, WebSpec
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import CrawlOrder, crawl
from scripts.benchmarks.command import arguments, finish, say, workspace
from scripts.benchmarks.detection_web import labelled
from scripts.benchmarks.recorded import agreement
from scripts.synthetic_truth import Truth, is_of_frame
from tests.integration.quick import quick, unwatched

#: A seed that no test and no tuning has used.
SEED = 20_261_121
#: Days between two visits of the whole web, in turn.
INTERVALS_DAYS = (1.0, 2.0, 0.5, 3.0)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A verdict with its label. ``edits`` says what was done since the last visit."""

    place: SyntheticUrl
    edits: str
    changed: bool
    found_at_once: bool
    found: bool


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of right and wrong verdicts."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    @classmethod
    def of(cls, pairs: list[tuple[bool, bool]]) -> Score:
        """Of pairs of label and verdict."""
        counts = Counter(pairs)
        return cls(
            counts[True, True], counts[False, True], counts[True, False], counts[False, False]
        )

    @property
    def precision(self) -> float:
        """The share of the changes found that are changes."""
        return self.true_positive / max(1, self.true_positive + self.false_positive)

    @property
    def recall(self) -> float:
        """The share of the changes that were found."""
        return self.true_positive / max(1, self.true_positive + self.false_negative)

    @property
    def false_share(self) -> float:
        """The share of the unchanged pages that were taken for changed."""
        return self.false_positive / max(1, self.false_positive + self.true_negative)

    def as_json(self) -> dict[str, float]:
        """The counts and the shares."""
        return {
            "precision": round(self.precision, 4),
            "recall": round(self.recall, 4),
            "true_positive": self.true_positive,
            "false_positive": self.false_positive,
            "false_negative": self.false_negative,
            "true_negative": self.true_negative,
        }


async def crawled(web: SyntheticWeb, db: Path, visits: int) -> list[float]:
    """Crawl the web so often as it changes; the web's time of each visit."""
    clock = VirtualClock(web.start_at)
    fetcher = SyntheticFetcher(web, clock.now)
    seeds = seeds_from_arguments([fetcher.addresses.origin(name) for name in web.sites]).seeds
    times = []
    for n in range(visits):
        times.append(clock.now())
        await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched, fetcher=fetcher, clock=clock)
        clock.go_on_from(clock.now() + INTERVALS_DAYS[n % len(INTERVALS_DAYS)] * DAY_S)
    return times


def labelled_verdicts(web: SyntheticWeb, db: Path, times: list[float]) -> Iterator[Labelled]:
    """Each verdict on a page that was seen before, with the generator's label."""
    addresses, truth = Addresses.named(web.sites), Truth(web)
    forms: defaultdict[SyntheticUrl, list[tuple[float, Form]]] = defaultdict(list)
    for edit in truth.edits_between(web.start_at, web.end_at):
        forms[edit.place].append((edit.at, edit.form))
    last_seen: dict[str, float] = {}
    for url, run, kind, first_kind in _verdicts(db):
        place, now = addresses.place(url), times[run - 1]
        before, last_seen[url] = last_seen.get(url), now
        if before is None or place is None or place not in truth.alive(now):
            continue
        done = {form for at, form in forms[place] if before < at <= now}
        changed = truth.changed_significantly(place, before, now)
        yield Labelled(place, _edits(done), changed, first_kind == "changed", kind == "changed")


def _verdicts(db: Path) -> list[tuple[str, int, str, str]]:
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(
            "SELECT p.url, f.run_id, f.kind, f.first_kind FROM finding AS f "
            "JOIN page AS p ON p.id = f.page_id WHERE p.role = 'page' "
            "AND f.kind IN ('new', 'changed', 'unchanged') ORDER BY f.id"
        ).fetchall()


def _edits(forms: set[Form]) -> str:
    """One main edit by its name, several as such; frame edits only where there is no other."""
    main = sorted(form for form in forms if not is_of_frame(form))
    if main:
        return main[0] if len(main) == 1 else "several"
    return f"frame: {'+'.join(sorted(forms))}" if forms else "none"


def figures(verdicts: list[Labelled]) -> dict[str, object]:
    """The figures of a labelled set."""
    by_edit: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for v in verdicts:
        by_edit[v.edits].append((v.changed, v.found))
    words = Score.of(by_edit["word"])
    frames = Score.of([pair for e, pairs in by_edit.items() if e[:5] == "frame" for pair in pairs])
    return {
        "verdicts": len(verdicts),
        "amended": Score.of([(v.changed, v.found) for v in verdicts]).as_json(),
        "at_once": Score.of([(v.changed, v.found_at_once) for v in verdicts]).as_json(),
        "one_word_edits_found": round(words.recall, 4),
        "frame_rebuilds_false": round(frames.false_share, 4),
        "by_edit": {edit: Score.of(pairs).as_json() for edit, pairs in sorted(by_edit.items())},
    }


def by_site(verdicts: list[Labelled]) -> dict[str, object]:
    """Precision and recall site by site."""
    sites: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for v in verdicts:
        sites[v.place.host].append((v.changed, v.found))
    return {site: Score.of(pairs).as_json() for site, pairs in sorted(sites.items())}


def main() -> None:
    """Crawl and print."""
    parser = arguments(__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--pages", type=int, default=40, help="pages of each site")
    parser.add_argument("--visits", type=int, default=16)
    parser.add_argument("--recorded", type=Path, metavar="DIR", help="folder of recorded sites")
    options = parser.parse_args()
    web = labelled(WebSpec(4, options.pages, options.seed))
    with workspace() as folder:
        db = folder / "crawl.db"
        say(f"{len(web.sites)} sites, {options.visits} visits")
        times = asyncio.run(crawled(web, db, options.visits))
        verdicts = list(labelled_verdicts(web, db, times))
        recorded = {
            packed.name.partition(".")[0]: agreement(packed, folder)
            for packed in sorted(options.recorded.glob("*.sqlite.zst"))
        } if options.recorded is not None else None  # fmt: skip
    result = {"seed": options.seed, **figures(verdicts), "by_site": by_site(verdicts)}
    if recorded is not None:
        result["recorded"] = recorded
    finish(result, options.output)
