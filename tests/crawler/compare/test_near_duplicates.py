"""Near-duplicates: the bands are datasketch's, and the sketches decide."""

import random
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.near_duplicates import (
    BUCKET_SIZE,
    LEAST_SHINGLES,
    Banding,
    Leaders,
    bucket_keys,
    errors_among,
    optimal_banding,
    same,
)
from freshet.crawler.reduce.sketch import PERMUTATIONS, Sketch, sketch

BANDING = (9, 14)
WORDS = [f"word{i}" for i in range(3_000)]


def text(seed: int, length: int = 300, changed: int = 0) -> Sketch:
    """A text of random words, ``changed`` of them replaced at random places."""
    words = random.Random(seed).sample(WORDS, length)
    chance = random.Random(seed + changed)
    for _ in range(changed):
        words[chance.randrange(length)] = f"other{chance.randrange(10**9)}"
    return sketch([" ".join(words)])


def minhash(one: Sketch) -> MinHash:
    return MinHash(hashvalues=one.minima, scheme="affine32")


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_the_bands_are_those_that_datasketch_finds_best(threshold: float) -> None:
    lsh = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS, weights=(0.05, 0.95))
    count, rows = optimal_banding(threshold)
    assert (count, rows) == (lsh.b, lsh.r)
    assert lsh.hashranges == [(i * rows, (i + 1) * rows) for i in range(count)]


def test_at_the_usual_threshold_nine_in_ten_of_those_at_it_meet() -> None:
    assert optimal_banding(0.9) == BANDING
    meet = 1 - (1 - 0.9**14) ** 9
    assert meet == pytest.approx(0.90, abs=0.01)


def test_what_is_no_resemblance_is_no_threshold() -> None:
    for threshold in (-0.1, 1.1):
        with pytest.raises(ValueError, match="threshold"):
            optimal_banding(threshold)


@pytest.mark.parametrize("banding", [BANDING, (5, 25), (16, 8), (128, 1)])
def test_texts_share_a_bucket_where_a_band_of_their_minima_is_equal(banding: Banding) -> None:
    # Hence the candidates are those of MinHashLSH, unless two of 2**64 hashes are equal.
    texts = [text(1, changed=n) for n in range(0, 60, 3)] + [text(n) for n in range(2, 8)]
    lsh = MinHashLSH(num_perm=PERMUTATIONS, params=banding)
    for number, each in enumerate(texts):
        lsh.insert(number, minhash(each))
    keys = [set(bucket_keys(each, banding)) for each in texts]
    for each, own in zip(texts, keys, strict=True):
        assert {n for n, other in enumerate(keys) if own & other} == set(lsh.query(minhash(each)))


def test_keys_are_signed_64_bit_integers_and_the_same_for_ever() -> None:
    # They are stored: a change here needs a migration that empties the index.
    made = replace(text(1), minima=np.arange(PERMUTATIONS, dtype=np.uint32))
    keys = bucket_keys(made, (2, 3))
    assert keys == (7894363295723988377, -2660776587362231220)
    assert all(-(1 << 63) <= key < 1 << 63 for key in bucket_keys(text(1), BANDING))


def test_equal_minima_in_other_bands_share_no_bucket() -> None:
    minima = np.tile(np.arange(BANDING[1], dtype=np.uint32), BANDING[0])
    made = replace(text(1), minima=np.resize(minima, PERMUTATIONS))
    assert len(set(bucket_keys(made, BANDING))) == BANDING[0]


def test_a_short_text_has_one_bucket_and_an_empty_one_none() -> None:
    short = sketch([" ".join(WORDS[: LEAST_SHINGLES + 2])])
    long = sketch([" ".join(WORDS[: LEAST_SHINGLES + 3])])
    assert (short.shingle_count, long.shingle_count) == (LEAST_SHINGLES - 1, LEAST_SHINGLES)
    assert len(bucket_keys(short, BANDING)) == 1
    assert len(bucket_keys(long, BANDING)) == 9
    assert bucket_keys(sketch([]), BANDING) == ()


def test_the_keys_of_bands_are_hashes_of_their_numbers_and_minima() -> None:
    """They are stored: another hash would find no text that was read before."""
    made, (bands, rows) = text(1), BANDING
    octets = made.minima.astype("<u4").tobytes()
    assert bucket_keys(made, BANDING) == tuple(
        int.from_bytes(
            blake2b(
                octets[4 * rows * n : 4 * rows * (n + 1)], digest_size=8, salt=bytes((n, 0))
            ).digest(),
            "little",
            signed=True,
        )
        for n in range(bands)
    )
    with pytest.raises(ValueError, match="more than 128 minima"):
        bucket_keys(made, (9, 15))


def test_short_texts_are_one_page_only_if_they_are_equal() -> None:
    words = " ".join(WORDS[:10])
    assert same(sketch([words]), sketch([words]), 0.9) == (1.0, 0.0)
    # The shingles are equal, the texts are not.
    assert same(sketch([words]), sketch([words.upper()]), 0.5) is None
    assert same(sketch([words]), text(1), 0.0) is None
    assert same(sketch([]), sketch([]), 0.0) is None


def test_long_texts_are_one_page_if_they_resemble_by_a_standard_error_more() -> None:
    one, other = text(1), text(1, changed=3)
    found = same(one, other, 0.5)
    assert found is not None
    value, standard_error = found
    assert 0.85 < value < 1
    assert standard_error > 0
    limit = value - standard_error
    assert same(one, other, limit) == found
    assert same(one, other, limit + 1e-6) is None


def test_of_many_candidates_each_must_lie_further_above_the_threshold() -> None:
    assert errors_among(0) == errors_among(1) == pytest.approx(1.0)
    assert errors_among(16) == pytest.approx(2.33, abs=0.01)
    one, other = text(1), text(1, changed=3)
    found = same(one, other, 0.5)
    assert found is not None
    limit = found[0] - 2 * found[1]
    assert same(one, other, limit - 1e-6, errors=2.0) == found
    assert same(one, other, limit + 1e-6, errors=2.0) is None
    assert same(one, one, 0.9, errors=9.0) == (1.0, 0.0)


def test_pages_of_one_template_are_not_taken_for_each_other() -> None:
    # Each shares 0.85 with every other one: of so many estimates some lie above 0.9 by chance.
    words = random.Random(1).sample(WORDS, 340)
    template = [" ".join(words[:170]), " ".join(words[170:])]
    made = [
        sketch([template[0], " ".join(f"own{n}x{i}" for i in range(30)), template[1]])
        for n in range(300)
    ]
    leaders = Leaders(0.9)
    for n, each in enumerate(made):
        assert nearest(leaders, each) is None
        leaders.add(n, each, bucket_keys(each, BANDING))
    # What is a copy indeed is found among them.
    assert nearest(leaders, made[299]) == (299, 1.0)


def nearest(leaders: Leaders, made: Sketch) -> tuple[int, float] | None:
    match = leaders.nearest(made, bucket_keys(made, BANDING))
    return None if match is None else match[:2]


def led_by(texts: dict[int, Sketch], threshold: float = 0.8) -> Leaders:
    leaders = Leaders(threshold)
    for page_id, made in texts.items():
        leaders.add(page_id, made, bucket_keys(made, BANDING))
    return leaders


def test_a_text_belongs_to_the_leader_that_it_resembles_most() -> None:
    leaders = led_by({1: text(1, changed=4), 2: text(1), 3: text(2)})
    assert nearest(leaders, text(1)) == (2, 1.0)
    assert nearest(leaders, text(2)) == (3, 1.0)
    assert nearest(leaders, text(3)) is None
    # Of those that it resembles equally, to the oldest.
    assert nearest(led_by({7: text(1), 4: text(1), 9: text(1)}), text(1)) == (4, 1.0)


def test_stored_leaders_are_met_by_bucket_and_read_once() -> None:
    made = text(1)
    keys = bucket_keys(made, BANDING)
    leaders = Leaders(0.9)
    leaders.meet({keys[0]: [5], keys[1]: [5, 6]})
    assert leaders.unread([keys]) == {5, 6}
    leaders.read({5: made, 6: text(2)})
    assert leaders.unread([keys]) == set()
    assert nearest(leaders, made) == (5, 1.0)
    # Of very many candidates those in most buckets are compared.
    leaders = Leaders(0.9)
    leaders.meet({keys[0]: range(1, 40), keys[1]: range(30, 35)})
    assert leaders.unread([keys]) == {*range(1, 12), *range(30, 35)}


def test_of_a_full_bucket_the_first_leaders_are_met() -> None:
    made = text(1)
    keys = bucket_keys(made, BANDING)
    leaders = Leaders(0.9)
    leaders.meet({keys[0]: range(1, BUCKET_SIZE + 1)})
    leaders.read(dict.fromkeys(range(1, BUCKET_SIZE + 1), text(2)))
    leaders.add(99, made, keys[:3])
    assert leaders.nearest(made, keys[:1]) is None
    assert nearest(leaders, made) == (99, 1.0)


@given(st.lists(st.text(max_size=60), max_size=8))
def test_every_text_that_is_not_empty_finds_itself(blocks: list[str]) -> None:
    made = sketch(blocks)
    found = nearest(led_by({1: made}), made)
    assert found == ((1, 1.0) if made.shingle_count else None)
