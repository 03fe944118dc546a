"""Sketches: digests, shingles, minima and their bytes."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.sketch import (
    PERMUTATIONS,
    PLAIN_VERSION,
    Sketch,
    Words32,
    body_digest,
    minima,
    resemblance,
    sketch,
    text_digest,
    word_hashes,
)

BLOCKS = st.lists(st.text(max_size=60), max_size=8)
WORDS = [f"word{i}" for i in range(2_000)]


UNSPACED = "".join(map(chr, (*range(0xE00, 0x10A0), *range(0x1780, 0x1800))))


def shingle_set(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + 4]) for i in range(len(words) - 3)}


def datasketch_minima(hashes: Words32) -> Words32:
    other = MinHash(num_perm=128, seed=1, hashfunc=int, scheme="affine32")
    other.update_batch(hashes.tolist())
    return np.asarray(other.hashvalues, np.uint32)


@pytest.mark.parametrize("count", [0, 1, 2, 255, 256, 257, 1_000, 5_000])
def test_the_minima_equal_those_of_datasketch_value_for_value(count: int) -> None:
    hashes = np.random.default_rng(count).integers(0, 1 << 32, count, dtype=np.uint32)
    assert np.array_equal(minima(hashes), datasketch_minima(hashes))


@given(st.lists(st.integers(0, (1 << 32) - 1), max_size=60))
def test_the_minima_equal_those_of_datasketch_for_any_set(hashes: list[int]) -> None:
    array = np.array(hashes, np.uint32)
    assert np.array_equal(minima(array), datasketch_minima(array))


def mixed(value: int) -> int:
    value = (value ^ value >> 16) * 0x85EBCA6B % 2**32
    value = (value ^ value >> 13) * 0xC2B2AE35 % 2**32
    return value ^ value >> 16


@given(st.lists(st.sampled_from(WORDS[:3]), max_size=40) | st.lists(st.sampled_from(WORDS)))
def test_the_shingles_are_the_runs_of_four_words(words: list[str]) -> None:
    hashes = list(map(mixed, word_hashes(words).tolist()))
    runs = [hashes[i : i + 4] for i in range(max(min(1, len(words)), len(words) - 3))]
    expected = {
        sum(each * pow(0x9E3779B1, i) for i, each in enumerate(reversed(run))) % 2**32
        for run in runs
    }
    made = sketch(words)
    assert made.shingle_count == len(expected)
    assert np.array_equal(made.minima, minima(np.array(sorted(expected), np.uint32)))


def test_a_sketch_is_the_same_for_ever() -> None:
    # Stored sketches are compared with new ones: a change here needs a new version.
    made = sketch(["The quick brown fox jumps over the lazy dog.", "Żółw — 吾輩は猫 12.50 €"])
    assert made.shingle_count == 13
    assert made.minima[:4].tolist() == [705538224, 134948560, 202967734, 431951643]
    assert made.block_digests.tolist() == [10017154722130740371, 14078555539635431046]
    assert made.text_digest.hex() == "ee2ca8024d0cff3442ab2d8cfdcd5e84"
    assert body_digest(b"abc").hex() == "cf4ab791c62b8d2b2109c90275287816"


def test_a_sketch_of_words_between_marks_is_the_same_for_ever() -> None:
    made = sketch(["“Żółw” — déjà-vu… 12.50 € ¶", "naïve\u00a0café · Ωμέγα’s"])
    assert made.shingle_count == 6
    assert made.minima[:4].tolist() == [542676568, 854979856, 395531245, 542861307]


@given(st.text(st.characters(max_codepoint=0x2FFF, exclude_characters=UNSPACED)))
def test_what_stands_between_words_is_no_part_of_a_shingle(text: str) -> None:
    words = " ".join(re.findall(r"\w+", text.lower()))
    assert np.array_equal(sketch([text]).minima, sketch([words]).minima)


@pytest.mark.parametrize(
    ("first", "last"),
    [("\u4e00", "\u9fa5"), ("\u3041", "\u30f6"), ("\u0e01", "\u0e2e"), ("\u1780", "\u17b3")],
    ids=["Chinese", "Japanese", "Thai", "Khmer"],
)
def test_where_no_spaces_are_written_each_character_is_a_word(first: str, last: str) -> None:
    letters = random.Random(1).choices(range(ord(first), ord(last) + 1), k=400)
    old = "".join(map(chr, letters))
    new = "".join(chr(ord(c) ^ 1) if i % 20 == 10 else c for i, c in enumerate(old))
    assert sketch([old]).shingle_count == len(old) - 3
    # Each of the 20 characters stands in four of the 397 shingles: 317 of 477 are in both.
    value, standard_error = resemblance(sketch([old]), sketch([new]))
    assert abs(value - 317 / 477) < 4 * standard_error
    assert sketch([old]).text_digest != sketch([new]).text_digest


def test_words_of_latin_among_characters_stay_words() -> None:
    joined, apart = sketch(["検索エンジンGoogle"]), sketch(["検索エンジン Google"])
    assert np.array_equal(joined.minima, apart.minima)
    assert sketch(["検索エンジンGoogleの順位"]).shingle_count == 6 + 1 + 3 - 3


@given(BLOCKS)
def test_bytes_round_trip(blocks: list[str]) -> None:
    made = sketch(blocks)
    again = Sketch.from_bytes(made.to_bytes())
    assert again == made
    assert again.plain() is again.octets
    assert replace(again, octets=None).to_bytes() == made.to_bytes() == again.to_bytes()
    assert hash(again) == hash(made)
    assert again.block_digests.tolist() == made.block_digests.tolist()
    assert again.shingle_count == made.shingle_count


@given(BLOCKS)
def test_where_blocks_stand_is_kept(blocks: list[str]) -> None:
    places = [(1 << 63) + i for i in range(len(blocks))]
    made = sketch(blocks, places)
    assert Sketch.from_bytes(made.to_bytes()).block_places.tolist() == places
    assert sketch(blocks).block_places.tolist() == [0] * len(blocks)


@given(BLOCKS, st.data())
def test_bytes_cut_short_are_refused(blocks: list[str], data: st.DataObject) -> None:
    whole = sketch(blocks).to_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match="sketch of"):
        Sketch.from_bytes(whole[:cut])
    with pytest.raises(ValueError, match="sketch of"):
        Sketch.from_bytes(whole + b"\0")
    with pytest.raises(ValueError, match="version 7; this program reads 4"):
        Sketch.from_bytes(b"\x07" + whole[1:])


@given(BLOCKS)
def test_sketches_of_older_stores_are_read(blocks: list[str]) -> None:
    made = sketch(blocks)
    older = Sketch.from_bytes(made.plain())
    assert made.plain()[0] == PLAIN_VERSION
    assert older == made
    assert older.to_bytes() == made.to_bytes()


def test_places_that_repeat_take_little_room() -> None:
    blocks = [f"block number {n}" for n in range(200)]
    many, chance = sketch(blocks, [1] * 200), random.Random(1)
    apart = sketch(blocks, [chance.getrandbits(64) for _ in blocks])
    assert len(apart.to_bytes()) > len(apart.plain())
    assert len(many.to_bytes()) < len(many.plain()) - 5 * 200


def test_case_and_punctuation_are_no_part_of_a_shingle_but_of_a_block() -> None:
    one, other = sketch(["One, two: three. Four!"]), sketch(["one two THREE four"])
    assert np.array_equal(one.minima, other.minima)
    assert one.block_digests.tolist() != other.block_digests.tolist()
    assert one.text_digest != other.text_digest


def test_shingles_run_across_blocks_and_where_blocks_end_is_no_matter_to_the_text() -> None:
    whole, parts = sketch(["one two three four five"]), sketch(["one two", "three four five"])
    assert np.array_equal(whole.minima, parts.minima)
    assert whole.text_digest == parts.text_digest
    assert text_digest(["one two"]) != text_digest(["onetwo"])


@pytest.mark.parametrize(
    ("blocks", "count"),
    [([], 0), (["—", ""], 0), (["word"], 1), (["one two three"], 1), (["one two three four"], 1),
     (["one two three four five"], 2), (["a b c d a b c d a b c d"], 4), (["吾輩は猫である"], 4),
     (["สวัสดี"], 3), (["\ud800 word"], 1)],
)  # fmt: skip
def test_shingles_are_counted_once_each(blocks: list[str], count: int) -> None:
    assert sketch(blocks).shingle_count == count


def test_the_order_of_words_counts() -> None:
    assert sketch(["a b c d"]).minima.tolist() != sketch(["b a c d"]).minima.tolist()


@pytest.mark.parametrize("kept", [0, 300, 600, 900, 990, 1_000])
def test_the_resemblance_estimates_that_of_the_shingle_sets(kept: int) -> None:
    rng = random.Random(kept)
    old = rng.sample(WORDS, 1_000)
    new = old[:kept] + rng.sample(WORDS, 1_000 - kept)
    a, b = shingle_set(old), shingle_set(new)
    truth = len(a & b) / len(a | b)
    value, standard_error = resemblance(sketch([" ".join(old)]), sketch([" ".join(new)]))
    error = max((truth * (1 - truth) / PERMUTATIONS) ** 0.5, 1e-9)
    assert abs(value - truth) <= 4 * error
    assert standard_error == pytest.approx((value * (1 - value) / PERMUTATIONS) ** 0.5)


def test_the_resemblance_is_that_of_datasketch() -> None:
    old, new = sketch([" ".join(WORDS[:500])]), sketch([" ".join(WORDS[100:600])])
    theirs = [MinHash(hashvalues=made.minima, scheme="affine32") for made in (old, new)]
    assert resemblance(old, new)[0] == theirs[0].jaccard(theirs[1])


def test_empty_texts_resemble_only_each_other() -> None:
    empty, some = sketch([]), sketch(["one two three four"])
    assert resemblance(empty, empty) == (1.0, 0.0)
    assert resemblance(empty, some) == resemblance(some, empty) == (0.0, 0.0)
    assert resemblance(some, some) == (1.0, 0.0)


def test_a_huge_block_without_a_space_is_sketched_in_slices() -> None:
    assert sketch(["x" * 200_000]).shingle_count == 2
    assert sketch(["ab cd " * 50_000]).shingle_count == 2


@given(BLOCKS)
def test_any_text_can_be_sketched(blocks: list[str]) -> None:
    made = sketch(blocks)
    assert len(made.block_digests) == len(blocks)
    assert (made.shingle_count == 0) == (made.minima == 0xFFFFFFFF).all()
