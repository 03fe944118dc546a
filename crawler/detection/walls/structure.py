"""What a page's markup says for each kind of wall. Pure; the reading is done in ``signs``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from freshet.crawler.detection.walls.look import PageLook, WallKind
from freshet.crawler.detection.walls.signs import PageSigns


@dataclass(frozen=True, slots=True)
class Support:
    """How much the markup speaks for a kind, and what of it, for people."""

    weight: int = 0
    why: str = ""

    def __or__(self, other: Support) -> Support:
        """The sum, with the words of the weightier."""
        why = self.why if self.weight >= other.weight else other.why
        return Support(min(6, self.weight + other.weight), why)


_NONE: Final = Support()

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
#: What is printed for the webmaster: the visitor's address, or the number of the request.
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


def structure(look: PageLook) -> dict[WallKind, Support]:
    """The support for each kind."""
    found = {kind: judge(look) for kind, judge in _JUDGES.items()}
    if any(map(_TICKET.search, look.signs.texts)):
        for kind in _TICKETED:
            found[kind] |= Support(1, "the visitor's address or a number in its text")
    wayside = _wayside(look)
    if wayside.weight:
        for kind, support in found.items():
            if support.weight and kind is not WallKind.SOFT_404:
                found[kind] = support | wayside
    return found


def returns(look: PageLook) -> bool:
    """Whether a form would lead back to this very page when something is done first."""
    path = urlsplit(look.url).path
    if len(path) < 2:
        return False
    return any(path in unquote(value.partition("=")[2]) for value in look.signs.hidden)


def has_wayside_sign(look: PageLook) -> bool:
    """Whether there is any sign of a page that is passed through: in a form, script or head."""
    path = urlsplit(look.url).path
    if returns(look) or look.signs.noindex or look.signs.form_count or look.signs.controls:
        return True
    return len(path) > 4 and path in unquote(look.signs.scripts)


def _wayside(look: PageLook) -> Support:
    found = Support(1, "a form that leads back here") if returns(look) else _NONE
    if look.signs.noindex or look.signs.refresh_s is not None:
        found |= Support(1, "a note to search engines or a timer")
    return found


def _named(signs: PageSigns, pattern: re.Pattern[str]) -> bool:
    return any(map(pattern.search, signs.names))


def _addressed(signs: PageSigns, pattern: re.Pattern[str]) -> bool:
    return any(map(pattern.search, signs.addresses))


def _soft_404(look: PageLook) -> Support:
    signs = look.signs
    found = _NONE
    if signs.statuses & {404, 410}:
        found |= Support(3, "a script that states 404")
    if _named(signs, _NOT_FOUND):
        found |= Support(2, "the names of its elements")
    path = urlsplit(look.url).path
    if len(path) > 4 and any(path in unquote(text) for text in signs.texts):
        found |= Support(1, "its own URL in the text")
    return found


def _error(look: PageLook) -> Support:
    signs = look.signs
    found = _NONE
    if any(status >= 500 for status in signs.statuses):
        found |= Support(3, "a script that states an error of the server")
    if _named(signs, _ERROR):
        found |= Support(1, "the names of its elements")
    if sum(bool(_TRACE.search(text)) for text in signs.texts):
        found |= Support(3, "a stack trace")
    return found


def _login(look: PageLook) -> Support:
    signs = look.signs
    found = _NONE
    if any(map(_SAML.match, signs.hidden)):
        found |= Support(4, "a form for single sign-on")
    if signs.passwords and not signs.long_fields:
        lonely = signs.fields <= 2 and signs.passwords == 1
        bare = lonely and not signs.texts and not signs.headings
        found |= Support(4 if bare else 3 if lonely else 1, "a form for a password")
    if _named(signs, _PAYWALL):
        found |= Support(2, "the names of its elements")
    if _named(signs, _LOGIN) and (signs.passwords or signs.fields):
        found |= Support(1, "the names of its form")
    return found


def _consent(look: PageLook) -> Support:
    signs = look.signs
    found = _NONE
    if _named(signs, _CONSENT):
        found |= Support(2, "the names of its elements")
    if _addressed(signs, _CONSENT):
        found |= Support(2 if signs.iframes and not signs.texts else 1, "what it embeds")
    return found


def _captcha(look: PageLook) -> Support:
    signs = look.signs
    found = _NONE
    if _named(signs, _CHALLENGE):
        found |= Support(2, "the names of its elements")
    if _addressed(signs, _CHALLENGE):
        found |= Support(3 if signs.iframes and not signs.headings else 2, "what it embeds")
    if _CHALLENGE.search(signs.scripts):
        found |= Support(1 if signs.fields else 2, "its scripts")
    if signs.iframes and signs.elements <= 4 and not (signs.texts or signs.headings):
        found |= Support(3 + signs.noindex, "a frame from elsewhere and nothing else")
    if _is_bare_script(signs):
        found |= Support(5, "a script that sets a cookie and loads again, and nothing else")
    return Support(min(found.weight, 1), found.why) if signs.long_fields else found


def _is_bare_script(signs: PageSigns) -> bool:
    said = signs.headings or signs.texts or signs.linked or signs.controls or signs.iframes
    empty = not said and signs.elements <= 3 and not signs.frame_words
    scripts = signs.scripts
    return bool(empty and _COOKIE.search(scripts) and "location" in scripts)


def _rate_limited(look: PageLook) -> Support:
    signs = look.signs
    found = _NONE
    if _named(signs, _QUEUE) or _addressed(signs, _QUEUE) or "lineModel" in signs.scripts:
        found |= Support(2, "the names of its elements")
    if look.retry_after:
        found |= Support(3, "a Retry-After header")
    if 429 in signs.statuses:
        found |= Support(3, "a script that states 429")
    return found


_JUDGES: Final[dict[WallKind, Callable[[PageLook], Support]]] = {
    WallKind.SOFT_404: _soft_404,
    WallKind.ERROR_PAGE: _error,
    WallKind.LOGIN_WALL: _login,
    WallKind.CONSENT_WALL: _consent,
    WallKind.CAPTCHA: _captcha,
    WallKind.RATE_LIMITED_PAGE: _rate_limited,
}
