"""Signatures: what is parsed, and that only the secret makes one that counts."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.extensions.push.websub import is_authentic, parse_signature

METHODS = st.sampled_from(["sha1", "sha256", "sha384", "sha512"])


def signed(secret: str, body: bytes, method: str) -> str:
    return f"{method}={hmac.new(secret.encode(), body, getattr(hashlib, method)).hexdigest()}"


@given(st.text(min_size=1), st.binary(), METHODS, st.booleans())
def test_what_the_secret_signed_is_authentic(
    secret: str, body: bytes, method: str, upper: bool
) -> None:
    secret = secret.encode("utf-8", "replace").decode()
    header = signed(secret, body, method)
    signature = parse_signature(header.upper() if upper else header)
    assert signature is not None
    assert signature[0] == method
    assert is_authentic(secret, body, signature)


@given(st.binary(), st.binary(min_size=1), METHODS)
def test_another_body_or_secret_is_not(body: bytes, more: bytes, method: str) -> None:
    signature = parse_signature(signed("secret", body, method))
    assert signature is not None
    assert not is_authentic("secret", body + more, signature)
    assert not is_authentic("secret2", body, signature)


@given(METHODS, st.binary(max_size=64))
def test_a_digest_of_another_length_is_no_signature(method: str, digest: bytes) -> None:
    size = hashlib.new(method).digest_size
    parsed = parse_signature(f"{method}={digest.hex()}")
    assert (parsed is not None) is (len(digest) == size)


@given(st.text())
def test_no_header_breaks_the_parser(header: str) -> None:
    parsed = parse_signature(header)
    assert parsed is None or len(parsed[1]) >= 20


@pytest.mark.parametrize(
    "header",
    [None, "", "sha1", "sha256=", "md5=" + 32 * "0", "sha1=" + 40 * "g", "sha1=" + "0" * 39],
)
def test_what_is_no_signature(header: str | None) -> None:
    assert parse_signature(header) is None


def test_the_known_answer_of_rfc_4231() -> None:
    digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    signature = parse_signature(f"sha256={digest}")
    assert signature is not None
    assert is_authentic("Jefe", b"what do ya want for nothing?", signature)
