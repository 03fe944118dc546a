"""Edits of main content: what each form does to the blocks of a page.

Every edit changes the text that a reader sees; a test holds this for all forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random

from freshet.crawler.synthetic_web.content import Block, BlockKind, Form, Revision
from freshet.crawler.synthetic_web.languages import Language

#: Text pages: how often each form occurs among the edits of main content.
PROSE_MIX: Mapping[Form, float] = {
    Form.WORD: 0.35,
    Form.SENTENCE_ADDED: 0.25,
    Form.PARAGRAPH_ADDED: 0.16,
    Form.PARAGRAPH_REMOVED: 0.16,
    Form.REWRITE: 0.08,
}
#: Pages that state a number: mostly that changes.
FIGURE_MIX: Mapping[Form, float] = {Form.NUMBER: 0.8, **{f: w / 5 for f, w in PROSE_MIX.items()}}

#: Pages that say when something is: mostly that changes.
DATE_MIX: Mapping[Form, float] = {Form.DATE: 0.8, **{f: w / 5 for f, w in PROSE_MIX.items()}}

#: Below this a paragraph is added instead of removed, above the next removed instead.
_FEWEST, _MOST = 3, 12
#: Paragraphs after a rewrite.
_REWRITTEN = 5

_MONTHS = ("January", "March", "April", "June", "August", "September", "November")

Blocks = tuple[Block, ...]


def plan(
    rng: Random, times: Iterable[float], mix: Mapping[Form, float], paragraphs: int
) -> tuple[Revision, ...]:
    """A form for each time, for a page that starts with so many paragraphs."""
    forms, weights = list(mix), list(mix.values())
    revisions = []
    for at in times:
        form = rng.choices(forms, weights)[0]
        if form in {Form.PARAGRAPH_ADDED, Form.PARAGRAPH_REMOVED}:
            form = _within_bounds(form, paragraphs)
        paragraphs += (form is Form.PARAGRAPH_ADDED) - (form is Form.PARAGRAPH_REMOVED)
        paragraphs = _REWRITTEN if form is Form.REWRITE else paragraphs
        revisions.append(Revision(at, form))
    return tuple(revisions)


def _within_bounds(form: Form, paragraphs: int) -> Form:
    if paragraphs <= _FEWEST:
        return Form.PARAGRAPH_ADDED
    return Form.PARAGRAPH_REMOVED if paragraphs >= _MOST else form


def compose(
    rng: Random, language: Language, paragraphs: int, *, figure: bool, dated: bool = False
) -> Blocks:
    """The blocks of a new page."""
    blocks = [Block(BlockKind.PARAGRAPH, language.paragraph(rng)) for _ in range(paragraphs)]
    if figure:
        blocks.insert(1, Block(BlockKind.FIGURE, (_number(rng, language),)))
    if dated:
        blocks.insert(1, Block(BlockKind.DATE, (_date(rng),)))
    return tuple(blocks)


def revise(blocks: Blocks, form: Form, rng: Random, language: Language) -> Blocks:
    """The blocks after an edit of that form.

    Raises:
        KeyError: if the form is none that touches blocks.
        IndexError: if there is no block that it could touch.
    """
    return _REVISERS[form](blocks, rng, language)


def _change_word(blocks: Blocks, rng: Random, language: Language) -> Blocks:
    i, sentences = _pick_paragraph(blocks, rng)
    j = rng.randrange(len(sentences))
    words = language.split(sentences[j])
    k = rng.randrange(len(words))
    words[k] = language.word(rng, unlike=words[k])
    sentences[j] = language.join(words)
    return _with(blocks, i, sentences)


def _change_number(blocks: Blocks, rng: Random, language: Language) -> Blocks:
    return _replace(blocks, BlockKind.FIGURE, lambda: _number(rng, language))


def _change_date(blocks: Blocks, rng: Random, _language: Language) -> Blocks:
    return _replace(blocks, BlockKind.DATE, lambda: _date(rng))


def _replace(blocks: Blocks, kind: BlockKind, draw: Callable[[], str]) -> Blocks:
    """The blocks with another sentence in the first of that kind."""
    i = next(i for i, block in enumerate(blocks) if block.kind is kind)
    before = after = blocks[i].sentences[0]
    while after == before:
        after = draw()
    return _with(blocks, i, [after])


def _add_sentence(blocks: Blocks, rng: Random, language: Language) -> Blocks:
    i, sentences = _pick_paragraph(blocks, rng)
    sentences.insert(rng.randint(0, len(sentences)), language.sentence(rng))
    return _with(blocks, i, sentences)


def _add_paragraph(blocks: Blocks, rng: Random, language: Language) -> Blocks:
    at = rng.randint(0, len(blocks))
    new = Block(BlockKind.PARAGRAPH, language.paragraph(rng))
    return (*blocks[:at], new, *blocks[at:])


def _remove_paragraph(blocks: Blocks, rng: Random, _language: Language) -> Blocks:
    i, _ = _pick_paragraph(blocks, rng)
    return blocks[:i] + blocks[i + 1 :]


def _rewrite(blocks: Blocks, rng: Random, language: Language) -> Blocks:
    kinds = {block.kind for block in blocks}
    figure, dated = BlockKind.FIGURE in kinds, BlockKind.DATE in kinds
    return compose(rng, language, _REWRITTEN, figure=figure, dated=dated)


_REVISERS: Mapping[Form, Callable[[Blocks, Random, Language], Blocks]] = {
    Form.WORD: _change_word,
    Form.NUMBER: _change_number,
    Form.DATE: _change_date,
    Form.SENTENCE_ADDED: _add_sentence,
    Form.PARAGRAPH_ADDED: _add_paragraph,
    Form.PARAGRAPH_REMOVED: _remove_paragraph,
    Form.REWRITE: _rewrite,
}


def _pick_paragraph(blocks: Blocks, rng: Random) -> tuple[int, list[str]]:
    i = rng.choice([i for i, block in enumerate(blocks) if block.kind is BlockKind.PARAGRAPH])
    return i, list(blocks[i].sentences)


def _with(blocks: Blocks, i: int, sentences: Iterable[str]) -> Blocks:
    return (*blocks[:i], Block(blocks[i].kind, tuple(sentences)), *blocks[i + 1 :])


def _number(rng: Random, language: Language) -> str:
    return language.figure.format(f"{rng.randint(100, 99_999) / 100:.2f}")


def _date(rng: Random) -> str:
    month = rng.choice(_MONTHS)
    return f"Doors open on {rng.randint(1, 28)} {month} 2027 at {rng.randint(10, 21)}:30."
