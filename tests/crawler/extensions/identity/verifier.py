"""A verifier of Web Bot Auth, which follows draft-ietf-webbotauth-httpsig-protocol-01.

Fields are read by a parser of its own: no code of the signer is used.
"""

import json
import re
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_KEY = r"[a-z*][a-z0-9_.*-]*"
_STRING = r'"(?:[ !#-\[\]-~]|\\["\\])*"'
_PARAM = rf";{_KEY}(?:=(?:-?\d+|{_STRING}))?"
_MEMBER = re.compile(
    rf"(?P<key>{_KEY})=(?P<value>\((?P<items>[^()]*)\)(?:{_PARAM})*|{_STRING}(?:{_PARAM})*|"
    r":[A-Za-z0-9+/=]*:)(?:,[ ]*|$)"
)
_ITEM = re.compile(rf"({_STRING}(?:{_PARAM})*)(?: |$)")


class Unverified(Exception):
    """A request that is not shown to be of who it says."""


@dataclass(frozen=True)
class Verified:
    """What a signature has shown."""

    keyid: str
    params: Mapping[str, Any]
    components: Sequence[str]


def dictionary(text: str) -> dict[str, str]:
    """Return the members of a structured field that is a dictionary (RFC 9651)."""
    found, at = dict[str, str](), 0
    while at < len(text):
        member = _MEMBER.match(text, at)
        if member is None or member["key"] in found:
            raise Unverified(f"not a dictionary: {text[at:]}")
        found[member["key"]], at = member["value"], member.end()
    return found


def components_of(member: str) -> tuple[list[str], dict[str, Any]]:
    """Return the covered components and the parameters of a member of Signature-Input."""
    inner, _, rest = member[1:].partition(")")
    params = dict[str, Any]()
    for name, number, text in re.findall(rf";({_KEY})=(?:(-?\d+)|({_STRING}))", rest):
        params[name] = int(number) if number else text[1:-1]
    return _ITEM.findall(inner), params


def thumbprint(jwk: Mapping[str, str]) -> str:
    """Return the name of an Ed25519 key (RFC 8037, appendix A.3)."""
    said = f'{{"crv":"{jwk["crv"]}","kty":"{jwk["kty"]}","x":"{jwk["x"]}"}}'
    return urlsafe_b64encode(sha256(said.encode()).digest()).rstrip(b"=").decode()


def public_key(directory: Mapping[str, Any], keyid: str, now: float) -> Ed25519PublicKey:
    """Return the key of a directory that is called so, and is valid."""
    for jwk in directory["keys"]:
        if thumbprint(jwk) != keyid:
            continue
        if jwk["kid"] != keyid or "d" in jwk:
            raise Unverified("the directory is wrong")
        if not jwk.get("nbf", 0) <= now < jwk.get("exp", 9e9):
            raise Unverified("the key is not valid now")
        return Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(f"{jwk['x']}="))
    raise Unverified("no such key")


def checked(key: Ed25519PublicKey, signature: str, base: str) -> None:
    """Raise Unverified unless the key has signed this base."""
    try:
        key.verify(b64decode(signature.strip(":"), validate=True), base.encode("ascii"))
    except InvalidSignature:
        raise Unverified("the signature is of something else") from None


def base_of(lines: Mapping[str, str], member: str) -> str:
    """Return the signature base (RFC 9421, section 2.5), given the components' values."""
    covered, _ = components_of(member)
    parts = [f"{each}: {lines[each]}" for each in covered]
    return "\n".join([*parts, f'"@signature-params": {member}'])


def verify_request(
    fields: Mapping[str, str], authority: str, directories: Mapping[str, bytes], now: float
) -> Verified:
    """Return what the fields of a request to an authority show.

    ``directories`` are what a server found at URLs. Raises Unverified.
    """
    agents = dictionary(fields["Signature-Agent"])
    (label, member), *others = dictionary(fields["Signature-Input"]).items()
    covered, params = components_of(member)
    if others or ";" in agents[label]:
        raise Unverified("one signature, and no parameters of Signature-Agent")
    url = agents[label].strip('"')
    if not url.startswith("https://"):
        raise Unverified("the directory is not at an https URL")
    agent = f'"signature-agent";key="{label}"'
    if agent not in covered or not {'"@authority"', '"@target-uri"'} & set(covered):
        raise Unverified("too little is covered")
    if not {"created", "expires", "keyid", "tag"} <= params.keys():
        raise Unverified("a parameter is missing")
    if params["tag"] != "web-bot-auth" or params.get("alg", "ed25519") != "ed25519":
        raise Unverified("another tag, or another algorithm")
    if not params["created"] <= now < params["expires"] <= params["created"] + 86_400:
        raise Unverified("too early, too late, or for too long")
    key = public_key(json.loads(directories[url]), params["keyid"], now)
    lines = {'"@authority"': authority, agent: agents[label]}
    checked(key, dictionary(fields["Signature"])[label], base_of(lines, member))
    return Verified(params["keyid"], params, covered)


def verify_directory(
    body: bytes, fields: Mapping[str, str], authority: str, now: float
) -> list[str]:
    """Return the keys that have signed a directory of an authority (appendix B of the draft)."""
    digest = dictionary(fields["Content-Digest"])["sha-256"].strip(":")
    if b64decode(digest) != sha256(body).digest():
        raise Unverified("another body")
    found = []
    for label, member in dictionary(fields["Signature-Input"]).items():
        _, params = components_of(member)
        if params["tag"] != "http-message-signatures-directory":
            raise Unverified("another tag")
        if not params["created"] <= now < params["expires"]:
            raise Unverified("too early or too late")
        lines = {'"@authority";req': authority, '"content-digest"': fields["Content-Digest"]}
        key = public_key(json.loads(body), params["keyid"], params["created"])
        checked(key, dictionary(fields["Signature"])[label], base_of(lines, member))
        found.append(params["keyid"])
    return found
