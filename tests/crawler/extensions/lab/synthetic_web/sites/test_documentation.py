from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S
from freshet.crawler.extensions.lab.synthetic_web.sites import documentation
from freshet.crawler.extensions.lab.synthetic_web.web import START_AT, WebSpec
from scripts.synthetic_truth import Truth

SPEC = WebSpec()
SITE = documentation(SPEC.plot("docs"))
WEB = SPEC.web([SITE])
TRUTH = Truth(WEB)
END_AT = START_AT + 60 * DAY_S


def test_rebuilds_touch_the_frame_of_all_pages_at_once() -> None:
    rebuild = SITE.frame.revisions[0]
    edits = TRUTH.edits_between(rebuild.at - 1, rebuild.at)
    frame = {edit.place for edit in edits if edit.is_of_frame}
    assert frame == TRUTH.alive(rebuild.at)


def test_nearly_all_edits_are_of_the_frame() -> None:
    edits = TRUTH.edits_between(START_AT, END_AT)
    main = [edit for edit in edits if not edit.is_of_frame]
    assert 0 < len(main) < len(edits) / 20


def test_one_page_moves_and_takes_its_content_along() -> None:
    pages = dict(SITE.documents())
    (moved,) = (page for page in pages.values() if page.moved_to is not None)
    assert moved.moved_to is not None
    assert moved.died_at is not None
    before = moved.content_at(moved.died_at - 1)
    assert pages[moved.moved_to].content_at(moved.died_at) == before
