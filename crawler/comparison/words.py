"""What changed within a block, word by word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

# A character of a script that is written without spaces is a word of its own.
_UNSPACED: Final = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
#: A price, a date or a time is one word with its points and dashes: "10.99" becomes "11.49".
_NUMBER: Final = r"\d(?:[\d.,:/T+-]*[\dZ])?"
_TOKEN: Final = re.compile(rf"\s+|{_NUMBER}|[{_UNSPACED}]|[^\W\d{_UNSPACED}]+|[^\w\s]|_|\w")
#: Beyond so many tokens a block is compared as one: the comparison is quadratic at worst.
_MOST_TOKENS: Final = 4_000
#: By its beginning a longer text is known well enough.
_MOST_CHARACTERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of words: both empty never, both equal where nothing changed."""

    before: str
    after: str

    @property
    def is_kept(self) -> bool:
        """Whether the stretch stands in both versions."""
        return self.before == self.after


def compare_words(before: str, after: str) -> tuple[Run, ...]:
    """The stretches of two texts in order; joined, they give ``before`` and ``after`` again.

    >>> [(run.before, run.after) for run in compare_words("It costs 10.99 now", "It costs 9 now")]
    [('It costs ', 'It costs '), ('10.99', '9'), (' now', ' now')]
    """
    if before == after:
        return (Run(before, after),)
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if len(old) + len(new) > _MOST_TOKENS:
        return (Run(before, after),)
    return tuple(_joined(list(_stretches(old, new))))


def words_of(text: str) -> Counter[str]:
    """The words of a text with their numbers; punctuation counts, blanks do not."""
    return Counter(
        token for token in _TOKEN.findall(text[:_MOST_CHARACTERS]) if not token.isspace()
    )


def shared_words(before: Counter[str], after: Counter[str]) -> int:
    """How many words two texts have in common, whatever their order."""
    fewer, more = sorted((before, after), key=len)
    return sum(min(count, more[word]) for word, count in fewer.items() if word in more)


def _stretches(old: list[str], new: list[str]) -> Iterator[Run]:
    for tag, i, i_end, j, j_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        before, after = "".join(old[i:i_end]), "".join(new[j:j_end])
        yield Run(before, before if tag == "equal" else after)


def _joined(runs: list[Run]) -> Iterator[Run]:
    """Changes with nothing but a blank or a comma between them read better as one."""
    held: Run | None = None
    for i, run in enumerate(runs):
        between = run.is_kept and not re.search(r"\w", run.before)
        if held is not None and (not run.is_kept or (between and i + 1 < len(runs))):
            held = Run(held.before + run.before, held.after + run.after)
        elif run.is_kept:
            if held is not None:
                yield held
                held = None
            yield run
        else:
            held = run
    if held is not None:
        yield held
