import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.extensions.lab.synthetic_web.content import (
    ENGLISH,
    FIGURE_MIX,
    GERMAN,
    JAPANESE,
    PROSE_MIX,
    Blocks,
    Form,
    Language,
    compose,
    generator,
    plan,
    revise,
)

LANGUAGES = st.sampled_from([ENGLISH, GERMAN, JAPANESE])


def words(blocks: Blocks, language: Language) -> list[str]:
    return [w for b in blocks for sentence in b.sentences for w in language.split(sentence)]


@given(st.integers(0, 10**6), LANGUAGES, st.sampled_from(list(FIGURE_MIX)))
def test_every_form_changes_the_text(seed: int, language: Language, form: Form) -> None:
    before = compose(generator(seed), language, 5, figure=True)
    after = revise(before, form, generator(seed, "edit"), language)
    assert [block.text for block in after] != [block.text for block in before]


@given(st.integers(0, 10**6), LANGUAGES)
def test_a_word_edit_changes_one_word(seed: int, language: Language) -> None:
    before = compose(generator(seed), language, 4, figure=False)
    after = revise(before, "word", generator(seed, "edit"), language)
    pairs = zip(words(before, language), words(after, language), strict=True)
    assert sum(a.casefold() != b.casefold() for a, b in pairs) == 1


@given(st.integers(0, 10**6))
def test_a_number_edit_changes_one_token_of_the_figure(seed: int) -> None:
    before = compose(generator(seed), GERMAN, 3, figure=True)
    after = revise(before, "number", generator(seed, "edit"), GERMAN)
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert [a.kind for a, _ in changed] == ["figure"]
    tokens = zip(changed[0][0].text.split(), changed[0][1].text.split(), strict=True)
    assert sum(a != b for a, b in tokens) == 1


@pytest.mark.parametrize(
    ("form", "difference"), [("paragraph_added", 1), ("paragraph_removed", -1)]
)
def test_paragraphs_come_and_go_one_at_a_time(form: Form, difference: int) -> None:
    before = compose(generator(1), ENGLISH, 5, figure=True)
    assert len(revise(before, form, generator(2), ENGLISH)) == len(before) + difference


@given(st.integers(0, 10**6), st.sampled_from([PROSE_MIX, FIGURE_MIX]), st.integers(1, 15))
def test_a_plan_never_takes_the_last_paragraph(
    seed: int, mix: dict[Form, float], paragraphs: int
) -> None:
    blocks = compose(generator(seed), ENGLISH, paragraphs, figure=True)
    for n, revision in enumerate(plan(generator(seed), range(40), mix, paragraphs)):
        blocks = revise(blocks, revision.form, generator(seed, n), ENGLISH)
        assert any(block.kind == "paragraph" for block in blocks)
    assert len(blocks) <= 16
