"""The labelled set, on a small web: what the bench measures holds."""

from __future__ import annotations

from pathlib import Path

from freshet.crawler.extensions.lab.synthetic_web.content import SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.web import WebSpec
from scripts.benchmarks.detection import Labelled, Score, crawled, figures, labelled_verdicts
from scripts.benchmarks.detection_web import labelled


async def test_verdicts_agree_with_the_labels_of_the_generator(tmp_path: Path) -> None:
    web = labelled(WebSpec(hosts=2, pages_per_host=12, seed=5))
    db = tmp_path / "crawl.db"
    verdicts = list(labelled_verdicts(web, db, await crawled(web, db, visits=6)))
    score = Score.of([(v.changed, v.found) for v in verdicts])
    assert score.true_positive > 20
    assert score.precision >= 0.95
    assert score.recall >= 0.99


def test_precision_recall_and_shares_are_counted() -> None:
    score = Score.of([(True, True)] * 3 + [(False, True)] + [(True, False)] * 2 + [(False, False)])
    assert (score.precision, score.recall, score.false_share) == (0.75, 0.6, 0.5)


def test_figures_tell_word_edits_and_frame_rebuilds_apart() -> None:
    place = SyntheticUrl("site", "/")
    found = figures(
        [
            Labelled(place, "word", changed=True, found_at_once=True, found=True),
            Labelled(place, "word", changed=True, found_at_once=False, found=False),
            Labelled(place, "frame: banner", changed=False, found_at_once=True, found=False),
        ]
    )
    assert (found["one_word_edits_found"], found["frame_rebuilds_false"]) == (0.5, 0.0)
