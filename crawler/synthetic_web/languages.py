"""Prose that looks like prose: word lists with Zipf frequencies.

The r-th word of a list is drawn with probability proportional to 1/(r + 2.7), the law of
Zipf as corrected by Mandelbrot (1953) for the most frequent words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from random import Random


@dataclass(frozen=True, slots=True)
class Language:
    """A word list, most frequent first, and how its words become sentences.

    ``width`` is the length of every word where words are not spaced, else 0; ``figure``
    is a sentence with a place for a number.
    """

    code: str
    words: tuple[str, ...]
    stop: str
    figure: str
    width: int = 0
    _weights: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weights = tuple(accumulate(1 / (rank + 2.7) for rank in range(1, len(self.words) + 1)))
        object.__setattr__(self, "_weights", weights)

    def sentence(self, rng: Random) -> str:
        """Six to sixteen words."""
        return self.join(rng.choices(self.words, cum_weights=self._weights, k=rng.randint(6, 16)))

    def paragraph(self, rng: Random) -> tuple[str, ...]:
        """Two to five sentences."""
        return tuple(self.sentence(rng) for _ in range(rng.randint(2, 5)))

    def title(self, rng: Random) -> str:
        """Four different words of the rarer half, without a full stop."""
        return self.join(rng.sample(self.words[len(self.words) // 2 :], 4)).removesuffix(self.stop)

    def word(self, rng: Random, unlike: str = "") -> str:
        """A word, and another one than ``unlike``."""
        while True:
            word = rng.choices(self.words, cum_weights=self._weights)[0]
            if word.casefold() != unlike.casefold():
                return word

    def split(self, sentence: str) -> list[str]:
        """The words of a sentence, the first perhaps with a capital."""
        bare = sentence.removesuffix(self.stop)
        if not self.width:
            return bare.split(" ")
        return [bare[i : i + self.width] for i in range(0, len(bare), self.width)]

    def join(self, words: list[str]) -> str:
        """A sentence of these words."""
        text = ("" if self.width else " ").join(words)
        return text[:1].upper() + text[1:] + self.stop


ENGLISH = Language(
    "en",
    tuple(
        "the of and to in a is that for it as was with be by on not he his but at are this have "
        "from or had an they which one you were all her she there would their we him been has "
        "when who will no more if out so up said what its about than into them can only other "
        "time new some could these two may first then do any like my now over such our man me "
        "even most made after also did many off before must well back through years much where "
        "your way down should because long each just state those people too mister how good "
        "world make very year still see own work life men day get here old between both being "
        "under three never know same last another while us might great go come since against "
        "right came take used himself few house use place during high without again home around "
        "small however found part school thought went say general once upon every war left until "
        "always river harbour council bridge winter market journey engine garden letter teacher "
        "mountain copper village signal railway orchard lantern compass quarry timber weather "
        "glacier museum archive printer cable meadow furnace voyage census barley ferry".split()
    ),
    ".",
    "The current count is {}.",
)

GERMAN = Language(
    "de",
    tuple(
        "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es "
        "an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen "
        "so zum war haben nur oder aber vor zur bis mehr durch man sein wurde sei hatte kann "
        "gegen vom können schon wenn habe seine Mark ihre dann unter wir soll ich eines Jahr zwei "
        "Jahren diese dieser wieder keine Uhr seiner worden will zwischen immer Millionen was "
        "sagte gibt alle diesem seit muss wurden beim doch jetzt waren drei Jahre neue neuen "
        "damit bereits da ihr seinen müssen ab ihrer ohne sondern selbst ersten nun etwa heute "
        "weil ihm Menschen Deutschland anderen Bürger Straße Brücke Gemälde Mühle Wörterbuch "
        "Händler Küche Möbel Fähre Gärtner Schlüssel Werkzeug Leuchter Teppich Flöte Becher "
        "Fenster Ziegel Kürbis Wolle Papier Kessel Spiegel Bücher Stühle Körbe Gläser".split()
    ),
    ".",
    "Der Preis beträgt {} Euro.",
)

JAPANESE = Language(
    "ja",
    tuple(
        "時間 会社 問題 世界 日本 社会 政府 経済 場合 今日 自分 必要 関係 情報 研究 技術 地域 教育 "
        "生活 活動 国際 開発 環境 文化 歴史 科学 大学 学校 電話 電車 新聞 写真 映画 音楽 料理 "
        "旅行 天気 季節 動物 植物 海岸 山脈 道路 建物 図書 辞書 言葉 文字 数学 物理 化学 医学 "
        "病院 銀行 市場 価格 商品 工場 機械 材料 計画 結果 変化 将来".split()
    ),
    "。",
    "現在数量{}個。",
    width=2,
)

RUSSIAN = Language(
    "ru",
    tuple(
        "не на быть он что по это она этот но они мы весь который из то за свой ещё от так для "
        "ты же год человек время рука дело раз глаз жизнь день голова друг дом "
        "слово место лицо сторона нога дверь работа земля конец час голос город вода стол ребёнок "
        "сила отец женщина машина случай ночь мир вид ряд начало вопрос война деньги минута жена "
        "правда страна свет мать дорога окно комната письмо народ утро лето река снег".split()
    ),
    ".",
    "Сейчас их {}.",
)
