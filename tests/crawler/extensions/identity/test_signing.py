"""Signatures, against the vectors of the RFC and the draft, a verifier of our own, and another."""

import time
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms

from freshet.crawler.extensions.identity.keys import IdentityKey, directory, new_key, rotated
from freshet.crawler.extensions.identity.signing import RequestSigner, directory_fields
from tests.crawler.extensions.identity.verifier import (
    Unverified,
    base_of,
    checked,
    verify_directory,
    verify_request,
)

#: The Ed25519 key of RFC 9421, appendix B.1.4.
OCTETS = urlsafe_b64decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU=")
TEST_KEY = IdentityKey(Ed25519PrivateKey.from_private_bytes(OCTETS), 0)
AGENT = "https://bot.example.org/.well-known/http-message-signatures-directory"
NOW, DAY = 1_796_000_000.5, 86_400


def signed(
    keys: list[IdentityKey], authority: str = "example.org", now: float = NOW
) -> Mapping[str, str]:
    return dict(RequestSigner(keys, AGENT, 300, 30).fields(authority, now))


def test_the_vector_of_rfc_9421_b_2_6() -> None:
    member = (
        '("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"'
    )
    values = {
        '"date"': "Tue, 20 Apr 2021 02:07:55 GMT", '"@method"': "POST", '"@path"': "/foo",
        '"@authority"': "example.com", '"content-type"': "application/json",
        '"content-length"': "18",
    }  # fmt: skip
    signature = (
        "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    )
    base = base_of(values, member)
    assert b64encode(TEST_KEY.private.sign(base.encode())).decode() == signature
    checked(TEST_KEY.private.public_key(), f":{signature}:", base)


def test_the_name_of_a_key_is_that_of_the_draft() -> None:
    assert TEST_KEY.thumbprint == "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
    assert TEST_KEY.public == "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"


#: A request and a directory of appendix E of the draft.
VECTOR = {
    "Signature-Agent": 'agent2="https://signature-agent.test"',
    "Signature-Input": (
        'agent2=("@authority" "signature-agent";key="agent2");created=1735689600'
        ';keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600'
        ';nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1Y'
        'sauiA==";tag="web-bot-auth"'
    ),
    "Signature": (
        "agent2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdh"
        "EwYCCg==:"
    ),
}
DIRECTORY = (
    b'{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"'
    b',"x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}'
)
PROOF = {
    "Content-Digest": "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:",
    "Signature-Input": (
        'binding=("@authority";req "content-digest");created=1735689600;expires=4889289600'
        ';keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"'
        ';tag="http-message-signatures-directory"'
    ),
    "Signature": (
        "binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1G"
        "pz7gOVBg==:"
    ),
}


def test_our_verifier_accepts_the_vectors_of_the_draft() -> None:
    # The vector holds for decades, which the draft advises against.
    with pytest.raises(Unverified, match="for too long"):
        verify_request(VECTOR, "example.com", {"https://signature-agent.test": DIRECTORY}, NOW)
    assert verify_directory(DIRECTORY, PROOF, "signature-agent.test", NOW) == [TEST_KEY.thumbprint]
    with pytest.raises(Unverified, match="something else"):
        verify_directory(DIRECTORY, PROOF, "another.test", NOW)


@pytest.mark.parametrize("authority", ["example.org", "example.org:8443", "[::1]:8080"])
def test_requests_are_verified_by_the_directory(authority: str) -> None:
    keys = [TEST_KEY]
    there = {AGENT: directory(keys, NOW)}
    found = verify_request(signed(keys, authority), authority, there, NOW)
    assert (found.keyid, found.params["alg"]) == (TEST_KEY.thumbprint, "ed25519")
    # Not for another site, not by another directory, and not for ever.
    with pytest.raises(Unverified, match="something else"):
        verify_request(signed(keys, authority), "other.example", there, NOW)
    with pytest.raises(Unverified, match="no such key"):
        verify_request(signed(keys), "example.org", {AGENT: directory([new_key(0)], NOW)}, NOW)
    with pytest.raises(Unverified, match="too late"):
        verify_request(signed(keys), "example.org", there, NOW + 311)


def test_a_server_whose_clock_is_behind_or_ahead_verifies_too() -> None:
    there = {AGENT: directory([TEST_KEY], NOW)}
    for after in range(20):
        fields = signed([TEST_KEY], now=NOW + after)
        for wrong in (-30, 0, 299):
            verify_request(fields, "example.org", there, NOW + after + wrong)
        for much in (-41, 311):
            with pytest.raises(Unverified, match="too early, too late"):
                verify_request(fields, "example.org", there, NOW + after + much)


def test_requests_of_ten_seconds_to_a_host_share_a_signature_and_with_a_nonce_none_do() -> None:
    began = NOW - NOW % 10
    for nonce, count in ((False, 4), (True, 24)):
        signer = RequestSigner([TEST_KEY], AGENT, 300, 30, nonce=nonce)
        made = {signer.fields(host, began + n) for n in range(12) for host in ("a", "b")}
        assert len(made) == count


@dataclass
class Message:
    """A request as http-message-signatures wants it."""

    headers: dict[str, str]
    url: str = "https://example.org/page"
    method: str = "GET"


@dataclass
class Resolver(HTTPSignatureKeyResolver):
    key: IdentityKey
    asked: list[str] = field(default_factory=list)

    def resolve_public_key(self, key_id: str):  # type: ignore[no-untyped-def]
        self.asked.append(key_id)
        return self.key.private.public_key()


def test_another_library_verifies_a_request() -> None:
    resolver = Resolver(TEST_KEY)
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=resolver)
    # It looks at the clock itself.
    headers = dict(signed([TEST_KEY], now=time.time()))
    results = verifier.verify(
        Message(headers), max_age=timedelta(minutes=5), expect_tag="web-bot-auth"
    )
    assert resolver.asked == [TEST_KEY.thumbprint]
    [result] = results
    covered = dict(result.covered_components)
    assert covered.pop('"@signature-params"')
    assert covered == {
        '"@authority"': "example.org", '"signature-agent";key="sig1"': f'"{AGENT}"'
    }  # fmt: skip


def test_rotation_leaves_the_old_key_in_the_directory_until_it_expires() -> None:
    old = new_key(NOW - 100 * DAY)
    keys = list(rotated([old], NOW, 2, 7))
    new = keys[-1]
    signer = RequestSigner(keys, AGENT, 300, 30)
    for days, signs, there in (
        (0, old, 2),
        (1.9, old, 2),
        (2.1, new, 2),
        (8.9, new, 2),
        (9.1, new, 1),
    ):
        now = NOW + days * DAY
        fields, listed = dict(signer.fields("example.org", now)), directory(keys, now)
        assert verify_request(fields, "example.org", {AGENT: listed}, now).keyid == signs.thumbprint
        assert listed.count(b'"kid"') == there
    # The next rotation forgets what has expired.
    assert [it.thumbprint for it in rotated(keys, NOW + 10 * DAY, 2, 7)][:-1] == [new.thumbprint]


def test_a_rotation_in_a_hurry_lets_the_old_key_end_at_once() -> None:
    keys = rotated([new_key(NOW - DAY)], NOW, 0, 0)
    assert directory(keys, NOW + 1).count(b'"kid"') == 1
    assert RequestSigner(keys, AGENT, 300, 30).fields("example.org", NOW + 1)


def test_no_key_that_has_expired_signs(caplog: pytest.LogCaptureFixture) -> None:
    keys = [IdentityKey(TEST_KEY.private, 0, int(NOW))]
    assert RequestSigner(keys, AGENT, 300, 30).fields("example.org", NOW + 1) == ()
    assert "every key has expired" in caplog.text


def test_each_key_signs_the_directory() -> None:
    keys = rotated([new_key(NOW - DAY)], NOW, 0, 7)
    body = directory(keys, NOW)
    proof = directory_fields(keys, body, "bot.example.org", NOW)
    assert verify_directory(body, proof, "bot.example.org", NOW) == [it.thumbprint for it in keys]
    with pytest.raises(Unverified, match="another body"):
        verify_directory(body + b" ", proof, "bot.example.org", NOW)
