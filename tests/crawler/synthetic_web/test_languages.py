from collections import Counter

import pytest

from freshet.crawler.synthetic_web.content import (
    ENGLISH,
    GERMAN,
    JAPANESE,
    RUSSIAN,
    Language,
    generator,
)

LANGUAGES = [ENGLISH, GERMAN, JAPANESE, RUSSIAN]


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_a_sentence_is_split_into_the_words_it_was_joined_of(language: Language) -> None:
    sentence = language.sentence(generator(1))
    words = language.split(sentence)
    assert language.join(words) == sentence
    assert {word.casefold() for word in words} <= {word.casefold() for word in language.words}


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_no_word_stands_twice_in_a_list(language: Language) -> None:
    assert [word for word, n in Counter(language.words).items() if n > 1] == []


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_another_word_is_never_the_same_in_other_capitals(language: Language) -> None:
    rng = generator(2)
    first = language.words[0]
    assert all(language.word(rng, unlike=first.upper()) != first for _ in range(200))


def test_frequent_words_come_first() -> None:
    rng = generator(3)
    words = Counter(w.lower() for _ in range(500) for w in ENGLISH.split(ENGLISH.sentence(rng)))
    assert words["the"] > words["his"] > words["ferry"]


@pytest.mark.parametrize(
    ("language", "codec"), [(GERMAN, "cp1252"), (JAPANESE, "shift_jis"), (RUSSIAN, "koi8_r")]
)
def test_words_can_be_written_in_the_old_charset_of_the_language(
    language: Language, codec: str
) -> None:
    assert " ".join(language.words).encode(codec)
