"""Boards: frame and noise amid the content, which no name tells."""

import re
from typing import get_args

import pytest

from freshet.crawler.extensions.lab.synthetic_web.answers import Responder
from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S, ContentKind, SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.site import Addresses
from freshet.crawler.extensions.lab.synthetic_web.web import START_AT, SyntheticWeb, WebSpec
from scripts.benchmarks.detection_web import Clutter, board, labelled
from scripts.synthetic_truth import Truth

SPEC = WebSpec(hosts=1, pages_per_host=12, seed=3)


def web(*clutter: Clutter) -> SyntheticWeb:
    return SPEC.web([board(SPEC.plot("board"), clutter)])


def answers(made: SyntheticWeb, times: int, at: float = START_AT) -> list[str]:
    responder = Responder(made, Addresses.named(made.sites))
    return [
        responder.answer(SyntheticUrl("board", "/notice/1"), at).body.decode() for _ in range(times)
    ]


@pytest.mark.parametrize("clutter", list(Clutter))
def test_each_noise_differs_between_answers_of_one_version(clutter: Clutter) -> None:
    assert len(set(answers(web(clutter), 12))) > 1


def test_without_noise_answers_of_one_version_are_equal() -> None:
    assert len(set(answers(web(), 5))) == 1


def test_variants_are_two() -> None:
    quotes = {
        re.findall("<blockquote>(.*?)<", page)[0] for page in answers(web(Clutter.VARIANTS), 20)
    }
    assert len(quotes) == 2


def test_pages_state_prices_and_dates_that_change() -> None:
    made = web()
    kinds = {
        block.kind
        for _, page in made.sites["board"].documents()
        for block in page.content_at(START_AT).blocks
    }
    assert kinds == set(get_args(ContentKind))
    forms = {edit.form for edit in Truth(made).edits_between(START_AT, made.end_at)}
    assert {"date", "number", "banner", "rebuild"} <= forms


def test_a_rebuild_and_a_banner_change_every_page_and_no_content() -> None:
    made = web()
    for edit in Truth(made).edits_between(START_AT, made.end_at):
        if edit.form in {"banner", "rebuild"}:
            assert edit.is_of_frame
            before, after = (answers(made, 1, edit.at + d)[0] for d in (-1, 0))
            assert before != after
            assert not Truth(made).changed_significantly(edit.place, edit.at - 1, edit.at)
            break


def test_boards_are_part_of_the_labelled_web() -> None:
    made = labelled(WebSpec(4, 8, 1, span_days=10))
    assert {"board-all", "board-none", "news", "wiki"} <= set(made.sites)
    assert made.end_at == START_AT + 10 * DAY_S
