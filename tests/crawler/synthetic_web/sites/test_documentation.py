from freshet.crawler.synthetic_web.content import DAY_S, EditKind
from freshet.crawler.synthetic_web.sites import documentation
from freshet.crawler.synthetic_web.web import START_AT, Truth, WebSpec

SITE = documentation(WebSpec().plot("docs"))
TRUTH = Truth({"docs": SITE})
END_AT = START_AT + 60 * DAY_S


def test_rebuilds_touch_the_frame_of_all_pages_at_once() -> None:
    rebuild = SITE.frame.revisions[0]
    edits = TRUTH.edits_between(rebuild.at - 1, rebuild.at)
    frame = {edit.place for edit in edits if edit.kind is EditKind.FRAME}
    assert frame == TRUTH.alive(rebuild.at)


def test_nearly_all_edits_are_of_the_frame() -> None:
    edits = TRUTH.edits_between(START_AT, END_AT)
    main = [edit for edit in edits if edit.kind is EditKind.MAIN]
    assert 0 < len(main) < len(edits) / 20


def test_one_page_moves_and_takes_its_content_along() -> None:
    (move,) = TRUTH.moves(START_AT, END_AT)
    pages = dict(SITE.documents())
    assert move.moved_to is not None
    before = pages[move.place.target].content_at(move.at - 1)
    assert pages[move.moved_to.target].content_at(move.at) == before
