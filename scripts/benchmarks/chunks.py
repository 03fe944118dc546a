"""How many passages are embedded again after an edit of some pages, beside public splitters.

``MANUAL`` are folders of HTML files, such as those of Debian's packages python3-doc,
postgresql-doc and git-doc. Of each, one page of twenty is edited: a sentence is put into a
paragraph. Counted are the texts of an edited page that it did not have before, for which a model
would be asked again; ``of all`` are its texts. All splitters get the same content of a page, the
one that Freshet keeps, and 1,200 characters. ``--python`` is the interpreter of an environment
with ``scripts/competitors/splitters.txt``.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

from freshet.crawler.read.chunks import CHUNK_CHARS, chunks_of
from freshet.crawler.reduce.document import document
from scripts.benchmarks.command import arguments, finish
from scripts.benchmarks.manuals import pages

_SPLITTING: Final = Path(__file__).parents[1] / "competitors" / "split_pages.py"
_SENTENCE: Final = b" This sentence was added later, and says what nobody had asked for: %d."
_PARAGRAPH_ENDS: Final = re.compile(rb"[.:]\s*(?=</p>)")
_SHARE: Final = 0.05
#: Texts of a page, by the splitter.
Texts: TypeAlias = Mapping[str, Sequence[Sequence[str]]]


def edited(body: bytes, rng: Random) -> bytes | None:
    """Return a page with a sentence more in one paragraph, None without paragraphs."""
    if not (ends := [found.end() for found in _PARAGRAPH_ENDS.finditer(body)]):
        return None
    at = rng.choice(ends)
    return body[:at] + _SENTENCE % rng.randrange(10**6) + body[at:]


def texts_of(bodies: Sequence[tuple[str, bytes]], python: str) -> Texts:
    """Return the texts of pages by our chunks and by the splitters."""
    made = [document(body, url, "text/html") for url, body in bodies]
    ours = [
        [
            each.to_embed
            for each in chunks_of(
                it.blocks,
                [(*heading, name) for heading, name in zip(it.headings, it.anchors, strict=True)],
                CHUNK_CHARS, url=url, title=it.title,
            )
        ]
        for (url, _), it in zip(bodies, made, strict=True)
    ]  # fmt: skip
    asked = json.dumps([[it.html, it.markdown] for it in made])
    told = subprocess.run([python, str(_SPLITTING)], input=asked, capture_output=True, text=True)  # noqa: PLW1510
    if told.returncode:
        raise RuntimeError(told.stderr[-2000:])
    theirs: Texts = json.loads(told.stdout)
    return {"freshet": ours, **theirs}


def measure(folder: Path, python: str, seed: int) -> dict[str, Any]:
    """Edit pages of a manual, and count."""
    rng, before, after = Random(seed), list[tuple[str, bytes]](), list[tuple[str, bytes]]()
    known = [*pages(folder)]
    for url, body in rng.sample(known, len(known)):
        if len(after) < _SHARE * len(known) and (changed := edited(body, rng)) is not None:
            before.append((url, body))
            after.append((url, changed))
    old, new = texts_of(before, python), texts_of(after, python)
    # An edit of what is no content concerns nobody.
    seen = [n for n, texts in enumerate(new["freshet"]) if [*texts] != [*old["freshet"][n]]]
    found: dict[str, Any] = {"pages": len(known), "edited": len(seen)}
    for name, texts in new.items():
        again = sum(len(set(texts[n]) - set(old[name][n])) for n in seen)
        found[name] = {"embedded again": again, "of all": sum(len(texts[n]) for n in seen)}
    return found


def main() -> None:
    """The command ``scripts/bench chunks``."""
    parser = arguments(__doc__)
    parser.add_argument("manuals", type=Path, nargs="+", metavar="MANUAL")
    parser.add_argument("--python", required=True, help="an interpreter that has the splitters")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    found: dict[str, object] = {
        it.name: measure(it, chosen.python, chosen.seed) for it in chosen.manuals
    }
    finish(found, chosen.output)
