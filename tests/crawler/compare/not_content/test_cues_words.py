"""The cues that sentences hold, and the pages that pass without being weighed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.not_content.cues import (
    MOST_WORDS,
    cues,
    folded,
    is_judged,
    is_short,
    languages,
    spoken,
    tells,
    title_parts,
    weights,
)


def test_contractions_accents_and_punctuation_are_folded_away() -> None:
    assert folded("We couldn’t load «l’Été»!") == " we could not load l ete "
    assert folded("It can't — Łódź") == " it can not lodz "


def test_a_title_falls_into_the_page_and_the_site() -> None:
    assert title_parts("Page not found | The Shop") == [" page not found ", " the shop "]


@given(st.lists(st.text(st.sampled_from("aE'n t?!é，の\0\x1c\n"))))
def test_parts_of_a_title_are_folded_as_each_by_itself(parts: list[str]) -> None:
    folded_alone = [part for part in map(folded, parts) if part.strip()]
    assert title_parts(" | ".join(part.strip() or "-" for part in parts)) == folded_alone


def test_every_language_has_cues_for_every_kind() -> None:
    kinds = {"soft_404", "error_page", "login_wall", "consent_wall", "captcha"}
    for language in languages():
        found = {cue.kind for cue in cues(language)}
        assert kinds | {"rate_limited_page", "about", "aside"} <= found, language


def test_no_condition_is_empty() -> None:
    beginnings = [
        each
        for language in ("any", *languages())
        for cue in cues(language)
        for condition in cue.conditions
        for each in condition.beginnings
    ]
    assert all(each.strip() for each in beginnings)


@pytest.mark.parametrize(
    ("language", "sentence", "kind"),
    [
        ("en", "The page you requested could not be found.", "soft_404"),
        ("de", "Diese Seite existiert leider nicht.", "soft_404"),
        ("fr", "Cette page n'existe plus.", "soft_404"),
        ("es", "Acceso denegado: ha realizado demasiadas solicitudes.", "rate_limited_page"),
        ("it", "Il servizio è momentaneamente sospeso per manutenzione del server.", "error_page"),
        ("pt", "Faça login para continuar lendo.", "login_wall"),
        ("nl", "Bent u een mens? Vink het vakje aan.", "captcha"),
        ("ru", "Страница не найдена", "soft_404"),
        ("zh", "访问过于频繁，请稍后再试", "rate_limited_page"),
        ("ja", "お探しのページは見つかりませんでした。", "soft_404"),
        ("pl", "Zaloguj się, aby przeczytać cały artykuł.", "login_wall"),
        ("sv", "Godkänn alla kakor för att fortsätta.", "consent_wall"),
    ],
)
def test_each_language_is_heard(language: str, sentence: str, kind: str) -> None:
    text = folded(sentence)
    assert weights([text], language)[0][kind] >= 2


def test_an_undeclared_language_is_known_by_letters_or_common_words() -> None:
    assert "ja" in spoken("", folded("ページが見つかりません"))
    assert "ru" in spoken("", folded("Страница не найдена"))
    assert spoken("", folded("die Seite ist nicht mehr da")) == ("any", "en", "de")
    assert set(spoken("", folded("Oops"))) == {"any", *languages()}


def test_a_label_cue_says_nothing_within_a_long_sentence() -> None:
    text = folded("a login is what they built last year for all of the readers of the paper")
    assert "login_wall" not in weights([text], "en")[0]
    assert weights([" login "], "en")[0]["login_wall"] == 2


def test_only_pages_of_few_words_are_weighed() -> None:
    assert is_short(["short"])
    assert not is_short(["long " * 200] * 5)
    assert is_short(["x"] * MOST_WORDS)
    assert not is_short(["x"] * (MOST_WORDS + 1))


WORDS = ["word ", "Wörter ", "слово ", "λέξη ", "كلمة ", "מילה ", "단어 ", "单词", "単語", "日本"]


@pytest.mark.parametrize("word", WORDS)
def test_length_is_counted_in_words_of_any_script(word: str) -> None:
    assert is_short([word * (MOST_WORDS - 1)])
    assert not is_short([word * (2 * MOST_WORDS)])


NAMED = ["404 Not Found", "Page not found | Shop", "Access Denied", "Seite nicht gefunden"]
NOT_NAMED = ["Human resources of the town and its region in years of war", "Notes", "", None]


@pytest.mark.parametrize("title", NAMED)
def test_a_long_page_is_judged_if_its_title_says_what_it_is(title: str) -> None:
    assert is_judged(title, 1_000)
    assert not is_judged(title, 10_000)


#: Titles of policies, which a wall that asks for consent may have as well.
POLICIES = [
    "Cookies Policy", "Privacy | Example", "Datenschutz bei Muster", "Cookie-Richtlinie - Firma",
    "Vie privée et cookies", "Vos données | Banque", "Privacidad y cookies", "Informativa cookie",
    "Política de privacidade", "Privacy en cookies | Winkel", "Конфиденциальность", "隐私政策",
    "プライバシーポリシー", "Prywatność i cookies", "Integritet och kakor", "Your privacy choices",
]  # fmt: skip


@pytest.mark.parametrize("title", POLICIES)
def test_a_long_policy_is_no_wall_that_asks_for_consent(title: str) -> None:
    assert is_judged(title, MOST_WORDS)
    assert not is_judged(title, MOST_WORDS + 1)


@pytest.mark.parametrize("title", NOT_NAMED)
def test_a_long_page_with_an_ordinary_title_is_not_judged(title: str | None) -> None:
    assert is_judged(title, 1)
    assert not is_judged(title, 1_000)


@pytest.mark.parametrize(
    ("title", "text", "body"),
    [
        ("Page not found", "", b""),
        (None, "Diese Seite existiert leider nicht.", b""),
        (
            None,
            "\u304a\u63a2\u3057\u306e\u30da\u30fc\u30b8\u306f\u898b\u3064\u304b\u308a\u307e\u305b\u3093",
            b"",
        ),
        ("Hello", "Welcome", b"<input type=PASSWORD>"),
        (None, "", b"<script src=/challenge.js></script>"),
    ],
)
def test_a_word_or_the_markup_may_tell(title: str | None, text: str, body: bytes) -> None:
    assert tells(title, [text], body)


def test_an_ordinary_note_tells_nothing() -> None:
    assert not tells("Opening hours", ["We bake bread from six in the morning."], b"<p>We bake")


def test_a_word_of_millions_of_letters_costs_no_more_than_its_length_and_is_not_kept() -> None:
    # By a step for each of its beginnings it would take an hour.
    endless = "login" * 1_000_000
    assert weights([f" {endless} "], "en") == weights([" loginloginlogin "], "en")
    assert weights([f" {endless} login "], "en") == weights([" x login "], "en")
