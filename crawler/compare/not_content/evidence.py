"""The evidence in a page's own words and markup for each kind of block page.

The cues in title, headings, sentences, buttons and markup choose the kind that the page would be.
What speaks for and against it are features, which :mod:`.score` weighs.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log2
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from freshet.crawler.compare.not_content.cues import (
    ABOUT,
    ASIDE,
    folded,
    length,
    sentences,
    title_parts,
    weights,
    word_count,
)
from freshet.crawler.compare.not_content.page import (
    NotContentKind,
    PageFacts,
    PageSigns,
    is_root,
    says_nothing,
)

# -- structure ---------------------------------------------------------------

#: A weight of the markup for a kind, and the sign in words.
Sign: TypeAlias = tuple[int, str]


_NOT_FOUND: Final = re.compile(
    r"error-?_?404|\b404|page-?404|not-?_?found|no-?article|page-?missing|erreur404|seite404"
)
_ERROR: Final = re.compile(
    r"(?:^|[\s_-])(?:errors?|fehler|erreur|erro|errore|fout|blad|exception|traceback|stacktrace|"
    r"maintenance|wartung|manutenzione|onderhoud|die-message|is-error|err)(?:$|[\s_-])"
)  # fmt: skip
#: Places in a program's source, as interpreters print them.
_TRACE: Final = re.compile(
    r"\bat [\w.$]+\([\w.]+:\d+\)|File \".{1,200}\", line \d+|#\d+ /[\w./-]+\(\d+\)"
    r"|(?<=[\w/\\.-])\.(?:php|py|java|rb|cs|aspx|jsp|pl|go|js|ts):\d+"
    r"|\.(?:php|asp|aspx|jsp|cfm)\b.{0,30}\b"
    r"(?:on line|line:?|linea|ligne|zeile|linha|строк)\W{0,3}\d+"
    r"|\b(?:SELECT|UPDATE|INSERT) .{1,200}\b(?:FROM|INTO|SET|WHERE)\b",
    re.I | re.S,
)
#: What every such place has; it is found faster.
_MAY_TRACE: Final = re.compile(
    r"[:#]\d|(?:line:?|linea|ligne|zeile|linha|строк)\W{0,3}\d|SELECT|UPDATE|INSERT", re.I
)
#: Details for the webmaster: the visitor's address, or the number of the request.
TICKET: Final = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b"
    # A run of its signs is tried once, not from each of its words.
    r"|(?<![0-9a-f-])(?:\b|-++|(?<=\w)[0-9a-f]++(?=-))(?=[0-9a-f-]{12})"
    r"(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f-]{12,}\b",
    re.I,
)
_TICKETED: Final = frozenset(
    {NotContentKind.ERROR_PAGE, NotContentKind.CAPTCHA, NotContentKind.RATE_LIMITED_PAGE}
)
_PAYWALL: Final = re.compile(
    r"paywall|regwall|premium-?(?:wall|vagg|box|gate)|is-?locked|subscri\w*-?(?:wall|gate|only)|"
    r"box-?lock|login-?wall|auth-?wall|muro|betalv"
)  # fmt: skip
_LOGIN: Final = re.compile(
    r"log-?_?in|sign-?_?in|logon|auth|sso|saml|session|anmeld|connexion|accedi|acceso|logga|"
    r"entrar|zaloguj|inloggen|identif|member"
)  # fmt: skip
_SAML: Final = re.compile(r"^(?:SAMLRequest|SAMLResponse|RelayState|wresult|id_token)=", re.I)
_CONSENT: Final = re.compile(
    r"consent|cookie-?_?(?:wall|muur|mauer|gate|page)|age-?_?(?:gate|verif|check|modal)|"
    r"(?:^|[\s_/-])(?:cmp|tcf|rodo|gdpr|zustimmung|samtycke|toestemming|agegate|cookiewall)"
    r"(?:$|[\s_/-])|privacy-?(?:gate|wall|mgmt)|__tcfapi|message_id|region-?(?:select|chooser)|"
    r"country-?(?:select|chooser|picker)"
)  # fmt: skip
_CHALLENGE: Final = re.compile(
    r"captcha|turnstile|sitekey|challenge|geetest|funcaptcha|arkose|datadome|px-captcha|"
    r"incapsula|_sec/cp_|awswaf|botcheck|bot-?(?:check|detect|protect)|proof-?of-?work|"
    r"jschl|anubis|altcha|(?:verify|not)-?(?:a-?)?(?:human|you|robot)|incident_id|cdn-cgi/challenge"
)  # fmt: skip
_QUEUE: Final = re.compile(
    r"waiting-?_?room|(?:^|[\s_/-])(?:in-)?queue(?:$|\s)|queue-?it|"
    r"(?:^|[\s_/-])(?:coda|cola|fila|file-attente|warteraum|attente)"
    r"(?:$|[\s_/-])|rate-?limit|too-?many|throttl|blocked|access-?denied|linemodel"
)  # fmt: skip
_COOKIE: Final = re.compile(r"cookie", re.I)


def structure(facts: PageFacts) -> dict[NotContentKind, Sign]:
    """Return the weight of the markup for each kind, 0 to 6, with its strongest sign."""
    has_ticket = TICKET.search(facts.said) is not None
    way = _sum(_wayside(facts))
    found = {}
    for kind in NotContentKind:
        signs_of = _SIGNS.get(kind)
        sign = (0, "") if signs_of is None else _sum(signs_of(facts))
        if kind is NotContentKind.CAPTCHA and facts.signs.long_fields:
            sign = min(sign[0], 1), sign[1]
        if has_ticket and kind in _TICKETED:
            sign = _sum((sign, (1, "the visitor's address or a number in its text")))
        if sign[0] and way[0] and kind is not NotContentKind.SOFT_404:
            sign = _sum((sign, way))
        found[kind] = sign
    return found


def _sum(signs: Iterable[Sign]) -> Sign:
    """Return the sum of the weights, at most 6, with the words of the strongest sign."""
    total, strongest = 0, ""
    for weight, why in signs:
        strongest = strongest if total >= weight else why
        total = min(6, total + weight)
    return total, strongest


def returns(facts: PageFacts) -> bool:
    """Return whether a form leads back to this very page once an action is done."""
    path = urlsplit(facts.url).path
    if len(path) < 2:
        return False
    return any(path in unquote(value.partition("=")[2]) for value in facts.signs.hidden)


def _wayside(facts: PageFacts) -> Iterator[Sign]:
    if returns(facts):
        yield 1, "a form that leads back here"
    if facts.signs.noindex or facts.signs.refresh_s is not None:
        yield 1, "a note to search engines or a timer"


def _soft_404(facts: PageFacts) -> Iterator[Sign]:
    signs, path = facts.signs, urlsplit(facts.url).path
    if signs.statuses & {404, 410}:
        yield 3, "a script that states 404"
    if _NOT_FOUND.search(facts.names):
        yield 2, "the names of its elements"
    if len(path) > 4 and any(path in unquote(text) for text in signs.texts):
        yield 1, "its own URL in the text"


def _error(facts: PageFacts) -> Iterator[Sign]:
    signs = facts.signs
    if any(status >= 500 for status in signs.statuses):
        yield 3, "a script that states an error of the server"
    if _ERROR.search(facts.names):
        yield 1, "the names of its elements"
    if _MAY_TRACE.search(facts.said) and _TRACE.search(facts.said):
        yield 3, "a stack trace"


def _login(facts: PageFacts) -> Iterator[Sign]:
    signs = facts.signs
    if any(map(_SAML.match, signs.hidden)):
        yield 4, "a form for single sign-on"
    if signs.passwords and not signs.long_fields:
        lonely = signs.fields <= 2 and signs.passwords == 1
        bare = lonely and signs.lacks(signs.texts, signs.headings)
        yield 4 if bare else 3 if lonely else 1, "a form for a password"
    if _PAYWALL.search(facts.names):
        yield 2, "the names of its elements"
    if (signs.passwords or signs.fields) and _LOGIN.search(facts.names):
        yield 1, "the names of its form"


def _consent(facts: PageFacts) -> Iterator[Sign]:
    signs = facts.signs
    if _CONSENT.search(facts.names):
        yield 2, "the names of its elements"
    if _CONSENT.search(facts.addresses):
        yield 2 if signs.iframes and signs.lacks(signs.texts) else 1, "its embedded addresses"


def _captcha(facts: PageFacts) -> Iterator[Sign]:
    yield from _named_checks(facts)
    if facts.signs.lacks(facts.signs.texts, facts.signs.headings):
        yield from _wordless_checks(facts.signs)


def _named_checks(facts: PageFacts) -> Iterator[Sign]:
    """Weigh names that checks of visitors have."""
    signs = facts.signs
    if _CHALLENGE.search(facts.names):
        yield 2, "the names of its elements"
    if _CHALLENGE.search(facts.addresses):
        yield 3 if signs.iframes and signs.lacks(signs.headings) else 2, "its embedded addresses"
    if _CHALLENGE.search(signs.scripts.lower()):
        yield 1 if signs.fields else 2, "its scripts"


def _wordless_checks(signs: PageSigns) -> Iterator[Sign]:
    """Weigh the markup of a page without words."""
    if signs.iframes and signs.elements <= 4:
        yield 3 + signs.noindex, "a frame from elsewhere and nothing else"
    if signs.refreshes_to_check:
        yield 6, "a refresh that leads to a check of visitors, and nothing else"
    bare = signs.lacks(signs.linked, signs.controls)
    bare &= not signs.iframes and signs.elements <= 3 and not signs.frame_words
    if bare and _COOKIE.search(signs.scripts) and "location" in signs.scripts:
        yield 5, "a script that sets a cookie and loads again, and nothing else"


#: A script that is a whole program: the names that bundlers give, and their folders.
_BUNDLE: Final = re.compile(
    r"(?:^|[/._-])(?:main|app|bundle|index|runtime|vendors?|chunks?|client|entry|polyfills|build|dist|"
    r"assets|_next|_nuxt|static/js)(?:$|[/._-])|^module$"
    # A hash, and no name of several words.
    r"|[._-](?=[A-Za-z_-]*(?:\d|[a-z][A-Z]))[0-9A-Za-z_-]{8,}\.m?js"
)
_PROGRAM: Final = re.compile(r"(?:(?:https?:)?//(?P<host>[^/?#]*))?(?P<path>[^?#]*)", re.I)
#: A longer text for those without scripts is content.
_MOST_NOSCRIPT_WORDS: Final = 150
#: Most words outside of the frame of a page that only shows its title.
_SPLASH_WORDS: Final = 3


def _heard(facts: PageFacts) -> tuple[list[str], int]:
    """Return the texts that a page shows, and the number of its own words."""
    signs = facts.signs
    shown = [*signs.headings, *signs.linked, *signs.controls]
    shown += [] if signs.is_all_frame else signs.texts
    heard = sum(len(text.split()) for text in facts.blocks.texts if not says_nothing(text))
    return shown, heard - len(signs.unscripted.split()) - signs.frame_words


def _speaks(signs: PageSigns, shown: Sequence[str], heard: int) -> bool:
    """Return whether a page has a text or a form, or lacks scripts that could build it."""
    return bool(
        not signs.programs
        or signs.refresh_s is not None
        or signs.form_count + signs.fields + signs.passwords + signs.long_fields
        or any(not says_nothing(text) and text not in signs.unscripted for text in shown)
        or heard > _SPLASH_WORDS
        or len(signs.unscripted.split()) > _MOST_NOSCRIPT_WORDS
    )


#: The weight of a place where scripts may build the page that frameworks do not name so.
UNNAMED_STAGE: Final = 3


def unbuilt(facts: PageFacts) -> Iterator[Sign]:
    """Weigh whether scripts build the page: it is empty, and has a place and a program for that."""
    signs, (shown, heard) = facts.signs, _heard(facts)
    if not signs.is_whole or _speaks(signs, shown, heard):
        return
    empty = [root for root, is_empty in signs.roots.items() if is_empty]
    if signs.frame_words and not empty:
        return
    root = min(empty or signs.roots, default="")  # an id before the name of an element
    notice = any("javascript" in text.lower() for text in (*shown, signs.unscripted))
    is_own, is_bundle = _programs(facts)
    is_blank = is_own and heard <= 0 and not (signs.frame_words or signs.media)
    weight = 1 + is_own + is_bundle + is_blank + 2 * bool(root) + 3 * notice
    if weight >= _BUILT_FROM and signs.media <= bool(root or notice):
        yield _of_stage(facts, root, notice=notice, is_bundle=is_bundle)


def _of_stage(facts: PageFacts, root: str, *, notice: bool, is_bundle: bool) -> Sign:
    """Return the weight of a page that scripts build, and the sign in words."""
    told = ", scripts and a notice on JavaScript" if notice else " and scripts"
    is_known = _is_known(facts.signs, root, is_told=notice or is_bundle)
    # Checks of visitors ask for JavaScript as well.
    weight = 4 if any(_captcha(facts)) else 6 if is_known else UNNAMED_STAGE
    return weight, (f"an empty {root}" if root else "no text") + told


#: The least weight of a page that scripts may build.
_BUILT_FROM: Final = 3


def _programs(facts: PageFacts) -> tuple[bool, bool]:
    """Return whether a script of the host runs, and whether one is a whole program."""
    here = ("", urlsplit(facts.url).netloc)
    programs = list(map(_PROGRAM.match, facts.signs.programs))
    is_own = any(p and p[0] != "inline" and (p["host"] or "").lower() in here for p in programs)
    return is_own, any(p and _BUNDLE.search(p["path"]) for p in programs)


def _is_known(signs: PageSigns, root: str, *, is_told: bool) -> bool:
    """Return whether it is known what scripts build, and that it is more than a part of the page.

    An arbitrary empty element beside scripts is weak evidence, as is a notice in a site's frame.
    """
    if root and is_root(root):
        return True
    return (is_told or not root) and not signs.frame_words


def _rate_limited(facts: PageFacts) -> Iterator[Sign]:
    signs = facts.signs
    if any(map(_QUEUE.search, (facts.names, facts.addresses))) or "lineModel" in signs.scripts:
        yield 2, "the names of its elements"
    if facts.retry_after:
        yield 3, "a Retry-After header"
    if 429 in signs.statuses:
        yield 3, "a script that states 429"


_SIGNS: Final[dict[NotContentKind, Callable[[PageFacts], Iterator[Sign]]]] = {
    NotContentKind.SOFT_404: _soft_404,
    NotContentKind.ERROR_PAGE: _error,
    NotContentKind.LOGIN_WALL: _login,
    NotContentKind.CONSENT_WALL: _consent,
    NotContentKind.CAPTCHA: _captcha,
    NotContentKind.RATE_LIMITED_PAGE: _rate_limited,
    NotContentKind.NEEDS_JAVASCRIPT: unbuilt,
}


#: The status of an error, with or without a word for it.
_NUMBER: Final = re.compile(
    # Each word in one way only: a title of forty words would be read in as many as 2 to the 40th.
    r" (?>(?:(?:http|status|code|err|erreur|fehler|erro|errore?s?|error|fout|fel|felkod|blad|"
    r"ошибка|エラー|错误|chyba|hata|hiba|virhe|fejl|feil|eroare) )*)"
    r"(?:40\d|41\d|42\d|431|444|451|49[4-9]|50\d|51[01]|52\d|530) (?:error )?"
)
#: The media of a page that shows one picture, see :class:`PageSigns`.
_A_PICTURE: Final = 1
#: Kinds with a markup that pages for readers never have.
_MACHINE: Final = frozenset({NotContentKind.CAPTCHA, NotContentKind.RATE_LIMITED_PAGE})
#: Quoted text is a mention, not a statement of the page.
_QUOTED: Final = re.compile(
    r"«[^»\n]{2,200}»|„[^“”\"\n]{2,200}[“”\"]|“[^”\n]{2,200}”|「[^」\n]{2,100}」"
    r"|\"[^\"\n]{2,200}\""
)
#: A part of a title with more words than this is a headline.
_HEADLINE_WORDS: Final = 9
#: A longer sentence has content beside the phrase.
_ASIDE_WORDS: Final = 20
#: Own words of the wordier block pages.
_SOME_WORDS: Final = 50
#: Headings without a cue beside one with a cue; more divide an article.
_MOST_HEADINGS: Final = 2


@dataclass(frozen=True, slots=True)
class BlockPageEvidence:
    """The evidence for the kind that a page would be.

    ``cues`` is the sum of the cues, ``features`` the inputs of the score, ``why`` names the
    strongest cues. ``says_so``: the page has such words, or no words. ``machine`` is the sign
    in its markup that it is not made for readers, or None.
    """

    kind: NotContentKind
    cues: int
    features: Mapping[str, float]
    why: str
    says_so: bool
    machine: str | None


@dataclass(frozen=True, slots=True)
class _CueWeights:
    """The cues of each part of a page: the greatest weights by kind, one mapping a sentence."""

    title: dict[str, int]
    heading: dict[str, int]
    texts: tuple[tuple[str, dict[str, int]], ...]
    headings: tuple[tuple[str, dict[str, int]], ...]
    controls: dict[str, int]
    linked: dict[str, int]
    quoted: int


@dataclass(frozen=True, slots=True)
class _Cues:
    """The cues of one kind: weights of the name (title or heading), sentences, and so on."""

    title: int
    heading: int
    sentences: tuple[int, ...]
    controls: int
    linked: int
    markup: int
    sign: str

    @property
    def name(self) -> int:
        """Return the weight of title and heading, which are one cue; a weak cue does not count."""
        weight = max(self.title, self.heading)
        return weight if weight > 1 else 0

    @property
    def words(self) -> int:
        return self.name + sum(self.sentences[:2])

    @property
    def total(self) -> int:
        total = self.words + min(2, self.controls) + self.markup
        # A link leads elsewhere: it only supports the page's own words.
        return total + (min(1, self.linked) if total else 0)


def cues_by_kind(facts: PageFacts) -> dict[NotContentKind, tuple[int, ...]]:
    """Return cues by kind: title, heading, first and other sentences, buttons, links, markup."""
    cues = _cues_by_kind(_cue_weights(facts), facts)
    return {
        kind: (it.title, it.heading, sum(it.sentences[:1]), sum(it.sentences[1:]), it.controls,
               it.linked, it.markup)
        for kind, it in cues.items()
    }  # fmt: skip


def _cues_by_kind(said: _CueWeights, facts: PageFacts) -> dict[NotContentKind, _Cues]:
    markup = structure(facts)
    return {kind: _cues_of(kind, said, markup[kind]) for kind in NotContentKind}


def weigh(facts: PageFacts) -> BlockPageEvidence:
    """Return the evidence for the likeliest kind; of equals the first of the enumeration."""
    said = _cue_weights(facts)
    cues = _cues_by_kind(said, facts)
    kind = max(NotContentKind, key=lambda each: cues[each].total)
    best, signs = cues[kind], facts.signs
    reasons = [
        (best.title, f"its title “{(facts.title or '')[:60]}”"), (best.heading, "its heading"),
        (sum(best.sentences[:2]), "its text"), (best.controls, "its buttons"),
        (best.markup, best.sign),
    ]  # fmt: skip
    strongest = sorted(reasons, key=lambda each: -each[0])
    builds = kind is NotContentKind.NEEDS_JAVASCRIPT
    is_machine = builds or _is_machine(kind, best, signs)
    says_so = builds or best.words > 1 or signs.lacks(signs.texts, signs.headings)
    return BlockPageEvidence(
        kind=kind,
        cues=best.total,
        features={
            **_for(best, facts),
            **_against(kind, said, facts),
            "other kinds": min(8.0, sum(min(3, cues[k].total) for k in cues if k is not kind)),
        },
        why=", ".join(why for weight, why in strongest[:3] if weight),
        says_so=says_so,
        machine=best.sign if is_machine and says_so else None,
    )


def _is_machine(kind: NotContentKind, best: _Cues, signs: PageSigns) -> bool:
    if any(map(_SAML.match, signs.hidden)):
        return best.markup > 2
    has_form = signs.passwords + signs.long_fields > 0 or signs.fields > 1
    return kind in _MACHINE and best.markup > 1 + has_form


def _cues_of(kind: NotContentKind, said: _CueWeights, markup: Sign) -> _Cues:
    if kind is NotContentKind.NEEDS_JAVASCRIPT:
        # The sign has weighed the words already.
        return _Cues(0, 0, (), 0, 0, *markup)
    return _Cues(
        title=said.title.get(kind, 0),
        heading=said.heading.get(kind, 0),
        sentences=tuple(sorted((each.get(kind, 0) for _, each in said.texts), reverse=True)[:3]),
        controls=said.controls.get(kind, 0),
        linked=said.linked.get(kind, 0),
        markup=markup[0],
        sign=markup[1],
    )


def _for(best: _Cues, facts: PageFacts) -> dict[str, float]:
    """Return the features that speak for the kind."""
    signs, first, more = facts.signs, best.sentences[:1], best.sentences[1:]
    return {
        "name": best.name > 1,
        "strong name": best.name > 2,
        "title": best.title > 1,
        "sentence": sum(first) > 1,
        "strong sentence": sum(first) > 2,
        "second sentence": sum(more) > 1,
        "buttons": min(2, best.controls),
        "links": best.linked > 0,
        "markup": best.markup,
        "strong markup": best.markup > 2,
        "status": bool(signs.statuses) or facts.retry_after,
        "number of an error": _is_numbered(facts),
        "nothing at all": signs.lacks(
            facts.blocks.texts, signs.headings, signs.texts, signs.linked, signs.controls
        )
        and not signs.frame_words
        and signs.media <= _A_PICTURE,
        "leads back here": returns(facts),
        "elsewhere": facts.elsewhere,
        "replaced": facts.replaced,
    }


def _is_numbered(facts: PageFacts) -> bool:
    """Return whether a part of the title or the first words are the status of an error."""
    first = (folded(text) for text in facts.texts[:2])
    return any(map(_NUMBER.fullmatch, (*title_parts(facts.title or ""), *first)))


def _against(kind: NotContentKind, said: _CueWeights, facts: PageFacts) -> dict[str, float]:
    """Return the features in favour of content: its own words, and parts of articles."""
    signs = facts.signs
    own = _unread_words(facts) + sum(
        word_count(text)
        for text, weights in (*said.texts, *said.headings)
        if weights.get(kind, 0) < 2 and not (ASIDE in weights and word_count(text) <= _ASIDE_WORDS)
    )
    words = length(facts.blocks.texts)
    headings = sum(not weights.get(kind, 0) and len(text) > 4 for text, weights in said.headings)
    about = said.heading.get(ABOUT, 0) + sum(weights.get(ABOUT, 0) for _, weights in said.texts)
    return {
        "words": log2(1 + words),
        "own words": log2(1 + own),
        "many own words": log2(max(1.0, own / _SOME_WORDS)),
        "title about something": said.title.get(ABOUT, 0) > 0,
        "about something": min(3, about),
        "quotes": min(2, said.quoted),
        "more headings": log2(1 + max(0, headings - _MOST_HEADINGS)),
        "words of the frame": log2(1 + signs.frame_words),
        "code": min(3, signs.codes),
    }


class _Sayings(NamedTuple):
    """The sentences of a page, by where they are."""

    titles: Sequence[str]
    headings: Sequence[str]
    texts: Sequence[str]
    controls: Sequence[str]
    linked: Sequence[str]
    quotes: Sequence[str]


def _sayings(facts: PageFacts) -> _Sayings:
    signs = facts.signs
    said = _unquoted(signs.texts)
    titles = title_parts(_QUOTED.sub(" ", facts.title or ""))
    headings = sentences(_unquoted(signs.headings))
    # With a visible text, the text for browsers without scripts is not shown.
    texts = sentences(said or [signs.noscript])
    controls, linked = sentences(signs.controls), sentences(signs.linked)
    every = "\n".join((*signs.texts, facts.title or ""))
    quotes = sentences(found[0] for found in _QUOTED.finditer(every))
    quotes = [quote for quote in quotes if quote not in controls]  # names the button
    return _Sayings(titles, headings, texts, controls=controls, linked=linked, quotes=quotes)


def _unquoted(texts: Sequence[str]) -> list[str]:
    # All at once: a call for each text would cost more than it gains.
    return _QUOTED.sub(" ", "\n".join(texts)).split("\n") if texts else []


def _cue_weights(facts: PageFacts) -> _CueWeights:
    it = _sayings(facts)
    every = [*chain.from_iterable(it)]
    found = dict(zip(every, weights(every, facts.signs.language), strict=True))
    return _CueWeights(
        title=_greatest(_toned(part, found[part]) for part in it.titles),
        heading=_greatest(_toned(part, found[part]) for part in it.headings[:6]),
        texts=tuple((text, found[text]) for text in it.texts),
        headings=tuple((text, found[text]) for text in it.headings),
        controls=_greatest(found[each] for each in it.controls),
        linked=_greatest(found[each] for each in it.linked),
        quoted=sum(max(found[quote].values(), default=0) > 1 for quote in it.quotes),
    )


def _toned(part: str, found: dict[str, int]) -> dict[str, int]:
    """Lower the weight of a headline that names a thing among many words."""
    if word_count(part) <= _HEADLINE_WORDS:
        return found
    return {kind: weight - (kind != ABOUT) for kind, weight in found.items()}


def _greatest(many: Iterable[dict[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in many:
        found |= Counter(each)
    return dict(found)


def _unread_words(facts: PageFacts) -> int:
    """Count the words of the main text that the signs do not have, as a limit cut them short."""
    signs = facts.signs
    if signs.is_whole:
        return 0
    read = (*signs.headings, *signs.texts, *signs.linked, *signs.controls)
    return max(0, length(facts.blocks.texts) - length(read))
