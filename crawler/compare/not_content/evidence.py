"""The evidence in a page's own words and markup for each kind of block page.

Title, headings, sentences, buttons and markup are weighed one by one. Sentences without a cue
are the page's own text and count against: an article about 404s has much of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from freshet.crawler.compare.not_content.cues import (
    ABOUT,
    ASIDE,
    CueSearch,
    folded,
    sentences,
    title_parts,
    word_count,
)
from freshet.crawler.compare.not_content.page import PageLook, PageSigns, WallKind

# -- structure ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Support:
    """The weight of markup for a kind, and the strongest sign in words."""

    weight: int = 0
    why: str = ""

    def __or__(self, other: _Support) -> _Support:
        """Return the sum, with the words of the weightier."""
        why = self.why if self.weight >= other.weight else other.why
        return _Support(min(6, self.weight + other.weight), why)


_NONE: Final = _Support()

_NOT_FOUND: Final = re.compile(
    r"error-?_?404|\b404|page-?404|not-?_?found|no-?article|page-?missing|erreur404|seite404", re.I
)
_ERROR: Final = re.compile(
    r"(?:^|[\s_-])(?:errors?|fehler|erreur|erro|errore|fout|blad|exception|traceback|stacktrace|"
    r"maintenance|wartung|manutenzione|onderhoud|die-message|is-error|err)(?:$|[\s_-])", re.I
)  # fmt: skip
#: Places in a program's source, as interpreters print them.
_TRACE: Final = re.compile(
    r"\bat [\w.$]+\([\w.]+:\d+\)|File \".{1,200}\", line \d+|#\d+ /[\w./-]+\(\d+\)"
    r"|[\w/\\.-]+\.(?:php|py|java|rb|cs|aspx|jsp|pl|go|js|ts):\d+"
    r"|\.(?:php|asp|aspx|jsp|cfm)\b.{0,30}\b"
    r"(?:on line|line:?|linea|ligne|zeile|linha|строк)\W{0,3}\d+"
    r"|\b(?:SELECT|UPDATE|INSERT) .{1,200}\b(?:FROM|INTO|SET|WHERE)\b",
    re.I | re.S,
)
#: Details for the webmaster: the visitor's address, or the number of the request.
_TICKET: Final = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f-]{12,}\b", re.I
)
_TICKETED: Final = frozenset({WallKind.ERROR_PAGE, WallKind.CAPTCHA, WallKind.RATE_LIMITED_PAGE})
_PAYWALL: Final = re.compile(
    r"paywall|regwall|premium-?(?:wall|vagg|box|gate)|is-?locked|subscri\w*-?(?:wall|gate|only)|"
    r"box-?lock|login-?wall|auth-?wall|muro|betalv", re.I
)  # fmt: skip
_LOGIN: Final = re.compile(
    r"log-?_?in|sign-?_?in|logon|auth|sso|saml|session|anmeld|connexion|accedi|acceso|logga|"
    r"entrar|zaloguj|inloggen|identif|member", re.I
)  # fmt: skip
_SAML: Final = re.compile(r"^(?:SAMLRequest|SAMLResponse|RelayState|wresult|id_token)=", re.I)
_CONSENT: Final = re.compile(
    r"consent|cookie-?_?(?:wall|muur|mauer|gate|page)|age-?_?(?:gate|verif|check|modal)|"
    r"(?:^|[\s_/-])(?:cmp|tcf|rodo|gdpr|zustimmung|samtycke|toestemming|agegate|cookiewall)"
    r"(?:$|[\s_/-])|privacy-?(?:gate|wall|mgmt)|__tcfapi|message_id|region-?(?:select|chooser)|"
    r"country-?(?:select|chooser|picker)", re.I
)  # fmt: skip
_CHALLENGE: Final = re.compile(
    r"captcha|turnstile|sitekey|challenge|geetest|funcaptcha|arkose|datadome|px-captcha|"
    r"incapsula|_sec/cp_|awswaf|botcheck|bot-?(?:check|detect|protect)|proof-?of-?work|"
    r"human|jschl|anubis|altcha|verify-?(?:human|you)|robot|incident_id|cdn-cgi/challenge", re.I
)  # fmt: skip
_QUEUE: Final = re.compile(
    r"waiting-?_?room|(?:^|[\s_/-])(?:in-)?queue(?:$|\s)|queue-?it|"
    r"(?:^|[\s_/-])(?:coda|cola|fila|file-attente|warteraum|attente)"
    r"(?:$|[\s_/-])|rate-?limit|too-?many|throttl|blocked|access-?denied|lineModel", re.I
)  # fmt: skip
_COOKIE: Final = re.compile(r"cookie", re.I)


def structure(look: PageLook) -> dict[WallKind, _Support]:
    """Return the support for each kind."""
    found = {kind: judge(look) for kind, judge in _JUDGES.items()}
    if any(map(_TICKET.search, look.signs.texts)):
        for kind in _TICKETED:
            found[kind] |= _Support(1, "the visitor's address or a number in its text")
    wayside = _wayside(look)
    if wayside.weight:
        for kind, support in found.items():
            if support.weight and kind is not WallKind.SOFT_404:
                found[kind] = support | wayside
    return found


def returns(look: PageLook) -> bool:
    """Return whether a form leads back to this very page once an action is done."""
    path = urlsplit(look.url).path
    if len(path) < 2:
        return False
    return any(path in unquote(value.partition("=")[2]) for value in look.signs.hidden)


def has_wayside_sign(look: PageLook) -> bool:
    """Return whether a form, script or head suggests a page on the way to another."""
    path = urlsplit(look.url).path
    if returns(look) or look.signs.noindex or look.signs.form_count or look.signs.controls:
        return True
    return len(path) > 4 and path in unquote(look.signs.scripts)


def _wayside(look: PageLook) -> _Support:
    found = _Support(1, "a form that leads back here") if returns(look) else _NONE
    if look.signs.noindex or look.signs.refresh_s is not None:
        found |= _Support(1, "a note to search engines or a timer")
    return found


def _named(signs: PageSigns, pattern: re.Pattern[str]) -> bool:
    return any(map(pattern.search, signs.names))


def _addressed(signs: PageSigns, pattern: re.Pattern[str]) -> bool:
    return any(map(pattern.search, signs.addresses))


def _soft_404(look: PageLook) -> _Support:
    signs = look.signs
    found = _NONE
    if signs.statuses & {404, 410}:
        found |= _Support(3, "a script that states 404")
    if _named(signs, _NOT_FOUND):
        found |= _Support(2, "the names of its elements")
    path = urlsplit(look.url).path
    if len(path) > 4 and any(path in unquote(text) for text in signs.texts):
        found |= _Support(1, "its own URL in the text")
    return found


def _error(look: PageLook) -> _Support:
    signs = look.signs
    found = _NONE
    if any(status >= 500 for status in signs.statuses):
        found |= _Support(3, "a script that states an error of the server")
    if _named(signs, _ERROR):
        found |= _Support(1, "the names of its elements")
    if sum(bool(_TRACE.search(text)) for text in signs.texts):
        found |= _Support(3, "a stack trace")
    return found


def _login(look: PageLook) -> _Support:
    signs = look.signs
    found = _NONE
    if any(map(_SAML.match, signs.hidden)):
        found |= _Support(4, "a form for single sign-on")
    if signs.passwords and not signs.long_fields:
        lonely = signs.fields <= 2 and signs.passwords == 1
        bare = lonely and not signs.texts and not signs.headings
        found |= _Support(4 if bare else 3 if lonely else 1, "a form for a password")
    if _named(signs, _PAYWALL):
        found |= _Support(2, "the names of its elements")
    if _named(signs, _LOGIN) and (signs.passwords or signs.fields):
        found |= _Support(1, "the names of its form")
    return found


def _consent(look: PageLook) -> _Support:
    signs = look.signs
    found = _NONE
    if _named(signs, _CONSENT):
        found |= _Support(2, "the names of its elements")
    if _addressed(signs, _CONSENT):
        found |= _Support(2 if signs.iframes and not signs.texts else 1, "its embedded addresses")
    return found


def _captcha(look: PageLook) -> _Support:
    signs = look.signs
    found = _NONE
    if _named(signs, _CHALLENGE):
        found |= _Support(2, "the names of its elements")
    if _addressed(signs, _CHALLENGE):
        points = 3 if signs.iframes and not signs.headings else 2
        found |= _Support(points, "its embedded addresses")
    if _CHALLENGE.search(signs.scripts):
        found |= _Support(1 if signs.fields else 2, "its scripts")
    if signs.iframes and signs.elements <= 4 and not (signs.texts or signs.headings):
        found |= _Support(3 + signs.noindex, "a frame from elsewhere and nothing else")
    if _is_bare_script(signs):
        found |= _Support(5, "a script that sets a cookie and loads again, and nothing else")
    return _Support(min(found.weight, 1), found.why) if signs.long_fields else found


def _is_bare_script(signs: PageSigns) -> bool:
    said = signs.headings or signs.texts or signs.linked or signs.controls or signs.iframes
    empty = not said and signs.elements <= 3 and not signs.frame_words
    scripts = signs.scripts
    return bool(empty and _COOKIE.search(scripts) and "location" in scripts)


def _rate_limited(look: PageLook) -> _Support:
    signs = look.signs
    found = _NONE
    if _named(signs, _QUEUE) or _addressed(signs, _QUEUE) or "lineModel" in signs.scripts:
        found |= _Support(2, "the names of its elements")
    if look.retry_after:
        found |= _Support(3, "a Retry-After header")
    if 429 in signs.statuses:
        found |= _Support(3, "a script that states 429")
    return found


_JUDGES: Final[dict[WallKind, Callable[[PageLook], _Support]]] = {
    WallKind.SOFT_404: _soft_404,
    WallKind.ERROR_PAGE: _error,
    WallKind.LOGIN_WALL: _login,
    WallKind.CONSENT_WALL: _consent,
    WallKind.CAPTCHA: _captcha,
    WallKind.RATE_LIMITED_PAGE: _rate_limited,
}


#: Quoted text is mentioned, not said.
_QUOTED: Final = re.compile(
    r"«[^»]{2,200}»|„[^“”\"]{2,200}[“”\"]|“[^”]{2,200}”|「[^」]{2,100}」|\"[^\"]{2,200}\""
)
#: A part of a title with more words than this is a headline.
_HEADLINE_WORDS: Final = 9
#: Words of links, which may be a menu or a shop's recommendations, that count as one.
_LINK_SHARE: Final = 4
#: Fewer words, such as a label or a number, are no text of the page's own.
_SHORT_LABEL_WORDS: Final = 3
#: Headings without a cue beside one with a cue; more divide an article.
_MOST_HEADINGS: Final = 2
#: A block page has a few of these; a table or an index has many.
_MOST_LABELS: Final = 8
#: A longer sentence has content beside the phrase.
_ASIDE_WORDS: Final = 20
#: The share at which phrases of all pages count, and where title or heading say it all.
_BY_THE_WAY: Final = 0.7
_BY_THE_WAY_TITLED: Final = 0.35


@dataclass(frozen=True, slots=True)
class KindEvidence:
    """The evidence for one kind.

    ``score`` adds up the cues, ``own_words`` counts words of the main part that are no cue,
    ``about`` weighs signs that the page is an article about the kind, ``why`` names the
    strongest cues.
    """

    kind: WallKind
    score: int
    own_words: int
    about: int
    why: str
    titled: bool


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


def weigh(look: PageLook) -> list[KindEvidence]:
    """Weigh all kinds, the weightiest first; equals in the order of the enumeration."""
    weights = _cue_weights(look)
    support = structure(look)
    every = [_weighed(kind, weights, support[kind], look) for kind in WallKind]
    return sorted(every, key=lambda weighed: -weighed.score)


def _cue_weights(look: PageLook) -> _CueWeights:
    signs = look.signs
    said = [_QUOTED.sub(" ", text) for text in signs.texts]
    titles = title_parts(_QUOTED.sub(" ", look.title or ""))
    headings = sentences(_QUOTED.sub(" ", text) for text in signs.headings)
    texts = sentences([*said, signs.noscript])
    controls, linked = sentences(signs.controls), sentences(signs.linked)
    quotes = sentences(q[0] for t in (*signs.texts, look.title or "") for q in _QUOTED.finditer(t))
    quotes = [quote for quote in quotes if quote not in controls]  # a text that tells what to press
    every = [*titles, *headings, *texts, *controls, *linked, *quotes]
    search = CueSearch(signs.language, " ".join(every))
    return _CueWeights(
        title=_greatest(_toned(part, search.weights(part, label=True)) for part in titles),
        heading=_greatest(_toned(part, search.weights(part, label=True)) for part in headings[:6]),
        texts=tuple((text, search.weights(text, label=True)) for text in texts),
        headings=tuple((text, search.weights(text, label=True)) for text in headings),
        controls=_greatest(search.weights(each, label=True) for each in controls),
        linked=_greatest(search.weights(each, label=True) for each in linked),
        quoted=sum(
            max(search.weights(quote, label=True).values(), default=0) > 1 for quote in quotes
        ),
    )


def _toned(part: str, weights: dict[str, int]) -> dict[str, int]:
    """Lower the weight of a headline that names a thing among many words."""
    if word_count(part) <= _HEADLINE_WORDS:
        return weights
    return {kind: weight - (kind != ABOUT) for kind, weight in weights.items()}


def _greatest(many: Iterable[dict[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for weights in many:
        found |= Counter(weights)
    return dict(found)


def _weighed(
    kind: WallKind, weights: _CueWeights, support: _Support, look: PageLook
) -> KindEvidence:
    title, heading = (
        # A weak cue does not name a page.
        weight if (weight := where.get(kind, 0)) > 1 else 0
        for where in (weights.title, weights.heading)
    )
    body = sorted((said.get(kind, 0) for _, said in weights.texts), reverse=True)
    spoken = sum(body[:2])
    controls = min(2, weights.controls.get(kind, 0))
    # A link leads elsewhere: it only supports the page's own words.
    if title or heading or spoken or controls or support.weight:
        controls += min(1, weights.linked.get(kind, 0))
    about = 2 * weights.title.get(ABOUT, 0) + weights.heading.get(ABOUT, 0) + sum(
        said.get(ABOUT, 0) for _, said in weights.texts
    ) + 2 * weights.quoted  # fmt: skip
    divided = sum(not said.get(kind, 0) and len(text) > 4 for text, said in weights.headings)
    signs = look.signs
    traced = kind is WallKind.ERROR_PAGE and support.weight >= 3
    about += (
        max(0, divided - _MOST_HEADINGS) + bool(signs.dates) + (bool(signs.codes) and not traced)
    )
    own = _own_words(
        kind,
        (*weights.texts, *weights.headings),
        look.signs.linked,
        _BY_THE_WAY_TITLED if max(title, heading) >= 3 and not about else _BY_THE_WAY,
    )
    reasons = _reasons(
        look, support, title=title, heading=heading, spoken=spoken, controls=controls
    )
    return KindEvidence(
        kind,
        title + heading + spoken + controls + support.weight,
        own,
        about,
        reasons,
        titled=title >= 3,
    )


def _own_words(
    kind: WallKind,
    weights: Sequence[tuple[str, dict[str, int]]],
    linked: Sequence[str],
    said_by_the_way: float,
) -> int:
    """Count the words of sentences without a cue; of labels, those beyond a block page's usual.

    Of a sentence with a weak cue, or one that all pages say by the way, a share counts.
    """
    own, labels = 0.0, []
    for text, said in weights:
        words = word_count(text)
        if said.get(kind, 0) >= 2:
            continue
        if words <= _SHORT_LABEL_WORDS:
            labels.append(words)
        else:
            weak = said.get(kind, 0) or (said.get(ASIDE, 0) and words <= _ASIDE_WORDS)
            own += words * said_by_the_way if weak else words
    links = sum(len(folded(text).split()) for text in linked) // _LINK_SHARE
    return int(own) + sum(sorted(labels)[_MOST_LABELS:]) + links


def _reasons(
    look: PageLook, support: _Support, *, title: int, heading: int, spoken: int, controls: int
) -> str:
    found = [
        (title, f"its title “{(look.title or '')[:60]}”"),
        (heading, "its heading"),
        (spoken, "its text"),
        (controls, "its buttons"),
        (support.weight, support.why),
    ]
    said = [why for weight, why in sorted(found, key=lambda each: -each[0]) if weight]
    return ", ".join(said[:3])
