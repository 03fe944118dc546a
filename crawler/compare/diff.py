"""Two versions of a page as lists of blocks, aligned.

**Method.** Blocks are paired in order, so that the pairs share the most words in sum (dynamic
programming, after the equal beginning and end are set aside): equal pairs were kept, similar ones
edited. A long edited text thus outweighs a short one that moved past it. Of the others, a text
that was removed at one place and added at another has moved. Where there are too many pairs to
compare, equal blocks (Ratcliff and Obershelp's) divide the problem.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal, TypeAlias, get_args

# -- words -------------------------------------------------------------------

# A character of a script that is written without spaces is a word of its own.
_UNSPACED: Final = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
#: A price, a date or a time is one word with its points and dashes: "10.99" becomes "11.49".
_NUMBER: Final = r"\d(?:[\d.,:/T+-]*[\dZ])?"
_TOKEN: Final = re.compile(rf"\s+|{_NUMBER}|[{_UNSPACED}]|[^\W\d{_UNSPACED}]+|[^\w\s]|_|\w")
#: Blocks of more tokens are compared as one: the comparison is quadratic at worst.
_MOST_TOKENS: Final = 4_000
#: Characters of a longer text that are compared.
_MOST_CHARACTERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of words in both versions, equal if it did not change; at most one is empty."""

    before: str
    after: str

    @property
    def is_kept(self) -> bool:
        """Return whether both versions have the stretch."""
        return self.before == self.after


def compare_words(before: str, after: str) -> tuple[Run, ...]:
    """Return the stretches of two texts in order; joined, they give both texts again.

    >>> [(run.before, run.after) for run in compare_words("It costs 10.99 now", "It costs 9 now")]
    [('It costs ', 'It costs '), ('10.99', '9'), (' now', ' now')]
    """
    if before == after:
        return (Run(before, after),)
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if len(old) + len(new) > _MOST_TOKENS:
        return (Run(before, after),)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    stretches = [
        Run("".join(old[i:i_end]), "".join(new[j:j_end]))
        for _, i, i_end, j, j_end in matcher.get_opcodes()
    ]
    return tuple(_joined(stretches))


def words_of(text: str) -> Counter[str]:
    """Return the words of a text with their numbers; punctuation counts, blanks do not."""
    return Counter(
        token for token in _TOKEN.findall(text[:_MOST_CHARACTERS]) if not token.isspace()
    )


def _joined(runs: list[Run]) -> Iterator[Run]:
    """Join changes that only a blank or a comma separates: they read better as one."""
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


#: Blocks that share fewer of their words are two blocks, not one that was edited.
_EDITED: Final = 0.5
#: Beyond this number of pairs, similarity is not computed.
_MOST_PAIRS: Final = 20_000
#: In longer texts, frequent blocks are not used to divide the texts into parts.
_LONG: Final = 2_000


#: The kind of change of a block.
BlockChange: TypeAlias = Literal["kept", "edited", "moved", "added", "removed"]


@dataclass(frozen=True, slots=True)
class AlignedBlock:
    """A block of one version or of both.

    ``before`` and ``after`` are positions in the two versions, None where the block is not in
    that version. A moved block is listed at its new position. ``runs`` compare an edited block word
    by word.
    """

    change: BlockChange
    before: int | None
    after: int | None
    text: str
    runs: tuple[Run, ...] = ()


def align(old: Sequence[str], new: Sequence[str]) -> tuple[AlignedBlock, ...]:
    """Return all blocks of the new version in order, and the removed ones at their old places.

    >>> [block.change for block in align(["a b c", "d"], ["d", "a b c"])]
    ['moved', 'kept']
    """
    partner = {j: i for i, j in _pairs(old, new)}
    moved = _moved(old, new, partner)
    left = {*partner.values(), *moved.values()}
    waiting = deque(i for i in range(len(old)) if i not in left)
    aligned: list[AlignedBlock] = []
    # Between two pairs, removed blocks are listed before added ones.
    limits, limit = [0] * len(new), len(old)
    for j in reversed(range(len(new))):
        limits[j] = limit = partner.get(j, limit)
    for j, limit in enumerate(limits):
        while waiting and waiting[0] < limit:
            aligned.append(_removed(old, waiting.popleft()))
        aligned.append(_arrived(old, new, j, partner, moved))
    aligned += [_removed(old, i) for i in waiting]
    return tuple(aligned)


def counts(aligned: Sequence[AlignedBlock]) -> dict[BlockChange, int]:
    """Count the blocks of each kind of change; all kinds are named."""
    found = Counter(block.change for block in aligned)
    return {change: found[change] for change in get_args(BlockChange)}


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Return positions of blocks that were kept or edited, ascending in both versions."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    yield from ((i, i) for i in range(head))
    for i, i_end, j, j_end in _regions(old[head : len(old) - tail], new[head : len(new) - tail]):
        gone, come = old[head + i : head + i_end], new[head + j : head + j_end]
        yield from ((head + i + k, head + j + m) for k, m in _within(gone, come))
    yield from ((len(old) - k, len(new) - k) for k in range(tail, 0, -1))


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _regions(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Return the regions to search for pairs: all, or equal stretches and the gaps between."""
    if len(old) * len(new) <= _MOST_PAIRS:
        yield 0, len(old), 0, len(new)
        return
    matcher = SequenceMatcher(None, old, new, autojunk=max(len(old), len(new)) > _LONG)
    for _, i, i_end, j, j_end in matcher.get_opcodes():
        yield i, i_end, j, j_end


def _within(gone: Sequence[str], come: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Return the pairs of a region that share the most words in sum; of a large one, by order."""
    if gone == come:
        yield from ((k, k) for k in range(len(gone)))
    elif len(gone) * len(come) <= _MOST_PAIRS:
        yield from _best_in_order(_worths(gone, come))
    else:
        pairs = zip(gone, come, strict=False)
        yield from ((k, k) for k, pair in enumerate(pairs) if _worths(*([x] for x in pair))[0][0])


def _worths(gone: Sequence[str], come: Sequence[str]) -> list[list[float]]:
    """Return the words that each pair shares, if they are enough for one edited block."""
    before, after = [_each_word(text) for text in gone], [_each_word(text) for text in come]
    return [
        [_worth(a, b, same=gone[i] == come[j]) for j, b in enumerate(after)]
        for i, a in enumerate(before)
    ]


def _each_word(text: str) -> set[tuple[str, int]]:
    """Return the words of a text, each with its number among its equals."""
    return {(word, n) for word, count in words_of(text).items() for n in range(count)}


def _worth(before: Set[object], after: Set[object], *, same: bool) -> float:
    if same:
        # An equal pair is better than one that shares as many words, and a text without any is
        # worth something.
        return len(before) + 0.5
    least = _EDITED * (len(before) + len(after)) / 2
    # Most pairs differ too much in length.
    if min(len(before), len(after)) < least:
        return 0.0
    shared = len(before & after)
    return float(shared) if shared >= least else 0.0


def _best_in_order(worths: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return the pairs of the largest worth in sum, by dynamic programming over prefixes."""
    if not worths or not worths[0]:
        return []
    rows, columns = len(worths), len(worths[0])
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows):
        for j in range(columns):
            paired = best[i][j] + worths[i][j]
            best[i + 1][j + 1] = max(best[i][j + 1], best[i + 1][j], paired)
    pairs: list[tuple[int, int]] = []
    i, j = rows, columns
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


def _moved(old: Sequence[str], new: Sequence[str], partner: Mapping[int, int]) -> dict[int, int]:
    """Map new positions of moved blocks to their old ones; the first of equals first."""
    kept = set(partner.values())
    places: dict[str, deque[int]] = {}
    for i, text in enumerate(old):
        if i not in kept:
            places.setdefault(text, deque()).append(i)
    return {
        j: places[text].popleft()
        for j, text in enumerate(new)
        if j not in partner and places.get(text)
    }


def _removed(old: Sequence[str], i: int) -> AlignedBlock:
    return AlignedBlock("removed", i, None, old[i])


def _arrived(
    old: Sequence[str],
    new: Sequence[str],
    j: int,
    partner: Mapping[int, int],
    moved: Mapping[int, int],
) -> AlignedBlock:
    if j in moved:
        return AlignedBlock("moved", moved[j], j, new[j])
    if j not in partner:
        return AlignedBlock("added", None, j, new[j])
    i = partner[j]
    if old[i] == new[j]:
        return AlignedBlock("kept", i, j, new[j])
    return AlignedBlock("edited", i, j, new[j], compare_words(old[i], new[j]))


# -- summary -----------------------------------------------------------------

_MARKS: Final = {"added": "+", "removed": "−"}
#: Words of an edited block that are shown before and after the change.
_AROUND: Final = 24
_ELLIPSIS: Final = "…"


def in_one_line(aligned: Sequence[AlignedBlock], width: int = 100) -> str:
    """Return the first edit, addition or removal, and the number of further ones.

    >>> from freshet.crawler.compare.diff import align
    >>> in_one_line(align(["Price: 10.99 each"], ["Price: 11.49 each"]))
    '“Price: 10.99 → 11.49 each”'
    """
    changed = [block for block in aligned if block.change != "kept"]
    if not changed:
        return "what differed is ignored now, or not read as text"
    order: Sequence[BlockChange] = ("edited", "added", "removed", "moved")
    first = min(changed, key=lambda block: order.index(block.change))
    more = in_numbers(aligned) if len(changed) > 1 else ""
    text, mark = first.text, _MARKS.get(first.change, f"{first.change}:")
    if first.change == "edited":
        text, mark = "".join(_written(run) for run in shortened(first.runs)), ""
    room = max(width - len(more) - 3, 30)
    text = text if len(text) <= room else text[: room - 1].rstrip() + _ELLIPSIS
    return f"{mark} “{text}”  {more}".strip()


def in_numbers(aligned: Sequence[AlignedBlock]) -> str:
    """Return a text such as ``2 edited, 1 added``: the kinds that occur, without the kept ones."""
    found = counts(aligned)
    return ", ".join(f"{n:,} {change}" for change, n in found.items() if n and change != "kept")


def shortened(runs: Sequence[Run], around: int = _AROUND) -> tuple[Run, ...]:
    """Return the runs of an edited block, kept text cut to ``around`` characters at each end."""
    last = len(runs) - 1
    return tuple(
        _cut(run, around if i else 0, around if i < last else 0) if run.is_kept else run
        for i, run in enumerate(runs)
    )


def _written(run: Run) -> str:
    if run.is_kept:
        return run.after
    if not run.before:
        return f"[+ {run.after.strip()}] "
    return f"{run.before} → {run.after}" if run.after else f"[− {run.before.strip()}] "


def _cut(run: Run, head: int, tail: int) -> Run:
    text = run.after
    if len(text) <= head + tail + 10:
        return run
    start = text[:head].rsplit(" ", 1)[0] + " " if head else ""
    end = " " + text[len(text) - tail :].split(" ", 1)[-1] if tail else ""
    short = f"{start}{_ELLIPSIS}{end}"
    return Run(short, short)
