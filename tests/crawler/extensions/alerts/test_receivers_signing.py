"""Signatures: the specification's own example, and secrets that are none."""

import pytest

from freshet.crawler.extensions.alerts.receivers import key_of, signature

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_example_that_all_implementations_share_is_signed_alike() -> None:
    signed = signature(
        key_of(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_without_prefix_is_its_own_bytes() -> None:
    assert key_of("a" * 24) == b"a" * 24


@pytest.mark.parametrize(
    ("secret", "why"),
    [("whsec_***", "is not base64"), ("whsec_c2hvcnQ=", "5 bytes"), ("too short", "9 bytes"),
     ("long" * 20, "80 bytes")],
)  # fmt: skip
def test_a_bad_secret_is_refused_and_not_quoted(secret: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        key_of(secret)
    assert secret not in str(raised.value)
