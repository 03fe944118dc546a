"""What is compared and what is delivered are one choice: the laws that follow from it."""

import re
from collections import Counter
from contextlib import closing
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from freshet.crawler.reduce.channels import channels, kinds_of
from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.page import parse
from scripts.benchmarks.recorded import Recording
from tests.crawler.reduce.kinds import KINDS, SENTENCE, SHELLS, page
from tests.integration.timeserver import FOLDER, NO_FOLDER

URL: Final = "https://h.example/a/b/"
_WORD: Final = re.compile(r"[^\W_]+")


class Seen(NamedTuple):
    """The compared text of a page, and its document: all of it, and in three forms in one text."""

    blocks: tuple[str, ...]
    delivered: tuple[str, str]
    shown: str

    def lacks(self, blocks: Counter[str]) -> set[str]:
        """Return the words of these blocks that the document does not show."""
        return {word for word in words(" ".join(blocks)) if word not in self.shown}


def seen(shell: str, html: str, *, is_big: bool) -> Seen:
    return seen_in(page(shell, html, is_big=is_big).encode())


def seen_in(body: bytes) -> Seen:
    made = document(body, URL, "text/html")
    shown = unescape(f"{made.text} {made.markdown} {made.html}")
    blocks = parse(body, URL, "text/html").blocks.texts
    return Seen(blocks, (made.markdown, made.html), shown.casefold())


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def pairs() -> dict[str, tuple[str, str]]:
    """Return a page's varying part before and after, by a name: two of a kind, or one and none."""
    found = dict[str, tuple[str, str]]()
    for kind, cases in KINDS.items():
        named = list(cases.items())
        for (one, before), (other, after) in pairwise(named):
            found[f"{kind}: {one} to {other}"] = before.html, after.html
        for name, case in named[::3]:
            found[f"{kind}: {name} appears"] = f"<p>{SENTENCE}</p>", f"<p>{SENTENCE}</p>{case.html}"
    return found


PAIRS: Final = pairs()
SHELL: Final = next(iter(SHELLS))
SITES: Final = "ada age flink httpwg lean lucene nifi parquet servo struts".split()


def test_there_are_pairs_of_every_kind() -> None:
    assert len(PAIRS) >= 120


@pytest.mark.parametrize(
    "is_big", [False, pytest.param(True, marks=pytest.mark.long)], ids=["small", "big"]
)
@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_reported_is_delivered(shell: str, is_big: bool) -> None:
    undelivered = dict[str, object]()
    for name, (before, after) in PAIRS.items():
        old, new = (seen(shell, html, is_big=is_big) for html in (before, after))
        before_only, after_only = Counter(old.blocks), Counter(new.blocks)
        if lacking := old.lacks(before_only - after_only) | new.lacks(after_only - before_only):
            undelivered[name] = lacking
        elif old.blocks != new.blocks and old.delivered == new.delivered:
            undelivered[name] = "the document is the same"
    assert undelivered == {}


@pytest.mark.parametrize("sign", ["#", "¶", "§", "🔗", "⚓", "\uf0c1"])
@pytest.mark.parametrize("other", ["", "<a href=#a> ¶ </a>", "<a href=#a>\uf0c1</a>"])
def test_a_link_to_a_heading_itself_is_neither_compared_nor_delivered(
    sign: str, other: str
) -> None:
    html = "<main><h2 id=a>Words{}</h2><p>" + SENTENCE
    one = seen(
        next(iter(SHELLS)), html.format(f"<a class=headerlink href=#a>{sign}</a>"), is_big=False
    )
    assert one == seen(SHELL, html.format(other), is_big=False)
    assert "Words" in one.blocks


def test_signs_of_links_in_code_are_compared() -> None:
    assert "a # b" in seen(SHELL, "<pre>a <a href=#a>#</a> b</pre>", is_big=False).blocks


def test_the_moments_that_are_compared_are_delivered() -> None:
    html = '<article><p>Published <time datetime="2026-01-{}">on a day in January</time>.'
    for day in ("05", "17"):
        found = seen(SHELL, html.format(day) + SENTENCE, is_big=False)
        assert f"2026-01-{day}" in " ".join(found.blocks)
        assert not found.lacks(Counter(found.blocks))


@pytest.mark.long
@pytest.mark.skipif(FOLDER is None, reason=NO_FOLDER)
@pytest.mark.parametrize("site", SITES)
def test_the_laws_hold_on_recorded_sites(site: str, tmp_path: Path) -> None:
    kept = broken = 0
    with closing(Recording(Path(FOLDER or "") / f"{site}.sqlite.zst", tmp_path)) as recording:
        for versions in recording.pages(24).values():
            blobs = [version.blob for version in versions if version.blob is not None][-4:]
            bodies = [recording.body(blob) for blob in blobs]
            for old, new in pairwise(bodies):
                before, after = seen_in(old), seen_in(new)
                one, other = Counter(before.blocks), Counter(after.blocks)
                kept += 1
                broken += bool(before.lacks(one - other) or after.lacks(other - one))
                is_changed = before.blocks != after.blocks
                differs = before.delivered != after.delivered
                kinds = [channels(body, URL, "text/html") for body in (old, new)]
                broken += is_changed and not differs
                broken += differs and not is_changed and not kinds_of(*kinds)
    assert (kept > 5, broken) == (True, 0)
