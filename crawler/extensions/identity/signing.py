"""Signatures of requests and of the directory: HTTP Message Signatures (RFC 9421) by Ed25519.

The signature follows draft-ietf-webbotauth-httpsig-protocol-01 of 29 October 2026. It covers the
authority of the request and the directory that the request names, but neither method nor path:
intermediaries rewrite paths, and a signature that fails is worse than a missing one.

Ed25519 is deterministic: requests to a host within the same ten seconds have the same signature,
which is made once. With a nonce each request has its own, which takes about a third of a GET.
"""

import logging
import os
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import sha256
from math import inf
from typing import Final, TypeAlias

from freshet.crawler.extensions.identity.keys import (
    DAY_S,
    IdentityKey,
    IdentityKeys,
    published,
    signing_at,
)

log = logging.getLogger(__name__)

#: Fields of a request: names and values.
_Fields: TypeAlias = tuple[tuple[str, str], ...]

#: The label of the signature, and of its member of Signature-Agent.
_LABEL: Final = "sig1"
#: Seconds in which requests share a signature, and the most hosts with a stored one.
_STEP_S: Final = 10
_HOSTS: Final = 4_096
#: Octets of a nonce, as in the test vectors of the draft: some servers require this number.
_NONCE_OCTETS: Final = 64
#: Days for which the signature of a directory holds: lists that pass it on may be made weekly.
_DIRECTORY_DAYS: Final = 7


class RequestSigner:
    """Signs requests by the newest key that has begun.

    ``created`` is set back by ``skew_s``, for servers whose clocks are behind.
    """

    def __init__(
        self, keys: IdentityKeys, agent: str, lifetime_s: int, skew_s: float, *, nonce: bool = False
    ) -> None:
        self._keys, self._lifetime_s, self._skew_s = keys, lifetime_s, skew_s
        self._agent, self._has_nonce = agent, nonce
        self._key_until = -inf
        self._fields: Callable[[str, int], _Fields] = _no_fields

    def fields(self, authority: str, now: float) -> _Fields:
        """Return the fields that sign a request to an authority; empty if every key has expired."""
        if now >= self._key_until:
            self._choose(now)
        return self._fields(authority, int(now - now % _STEP_S))

    def _choose(self, now: float) -> None:
        """Take the key that signs now, until another one begins or it ends."""
        turns = [at for it in self._keys for at in (it.begins, it.ends) if at is not None]
        self._key_until = min((at for at in turns if at > now), default=inf)
        key = signing_at(self._keys, now)
        if key is None:
            log.warning("requests are not signed: every key has expired; `freshet key rotate`")
            self._fields = _no_fields
            return
        make = partial(self._signed, key, key.thumbprint)
        self._fields = make if self._has_nonce else lru_cache(_HOSTS)(make)

    def _signed(self, key: IdentityKey, keyid: str, authority: str, at: int) -> _Fields:
        nonce = f';nonce="{b64encode(os.urandom(_NONCE_OCTETS)).decode()}"' * self._has_nonce
        agent = f'"signature-agent";key="{_LABEL}"'
        params = (
            f'("@authority" {agent});created={int(at - self._skew_s)}'
            f";expires={at + _STEP_S + self._lifetime_s}"
            f';keyid="{keyid}";alg="ed25519"{nonce};tag="web-bot-auth"'
        )
        base = f'"@authority": {authority}\n{agent}: "{self._agent}"\n"@signature-params": {params}'
        signature = b64encode(key.private.sign(base.encode())).decode()
        return (
            ("Signature-Agent", f'{_LABEL}="{self._agent}"'),
            ("Signature-Input", f"{_LABEL}={params}"),
            ("Signature", f"{_LABEL}=:{signature}:"),
        )


def _no_fields(_authority: str, _at: int) -> _Fields:
    return ()


def directory_fields(keys: IdentityKeys, body: bytes, authority: str, now: float) -> dict[str, str]:
    """Return the fields by which each published key signs the directory for one authority.

    They show that the keys are of who serves them there (appendix B of the draft).
    """
    digest = f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"
    inputs, signatures = [], []
    for number, key in enumerate(published(keys, now), 1):
        params = (
            f'("@authority";req "content-digest");created={int(now)}'
            f";expires={int(now) + _DIRECTORY_DAYS * DAY_S}"
            f';keyid="{key.thumbprint}";tag="http-message-signatures-directory"'
        )
        base = f'"@authority";req: {authority}\n"content-digest": {digest}\n'
        signed = key.private.sign(f'{base}"@signature-params": {params}'.encode())
        inputs.append(f"binding{number}={params}")
        signatures.append(f"binding{number}=:{b64encode(signed).decode()}:")
    return {
        "Content-Digest": digest,
        "Signature-Input": ", ".join(inputs),
        "Signature": ", ".join(signatures),
    }
