"""Secrets are taken out of log texts, and what is none stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.fetch.masking import MASK, masked, masked_value

SECRET = "s3cr3tV4lue"
NAMES = (
    "token", "access_token", "key", "api_key", "apikey", "X-Amz-Signature", "client_secret",
    "password", "sig", "PHPSESSID", "auth", "session_id", "sort_key",
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        f"https://me:{SECRET}@example.org/feed",
        f"https://{SECRET}@example.org/feed",
        f"https://me:a@{SECRET}@example.org/feed",
        f"postgresql+ssl://me:{SECRET}@example.org:5432/x",
        f"/?to=https%3A%2F%2Fme%3A{SECRET}%40example.org%2F",
        f"/?to=https%3A%2F%2Fexample.org%2F%3Ftoken%3D{SECRET}%26a%3D1",
        *(f"GET /feed?page=2&{name}={SECRET}&a=1 failed" for name in NAMES),
        *(f"/feed;{name.upper()}={SECRET}#top" for name in NAMES),
        f"Settings(password='{SECRET} and more', n=1)",
        f"Authorization: Bearer {SECRET}",
        f"authorization: Basic {SECRET}",
        f'Authorization: Digest username="{SECRET}", response="{SECRET}"',
        f"Proxy-Authorization:{SECRET}\r\nAccept: */*",
        f"Set-Cookie: sid={SECRET}; Path=/",
        f"X-Api-Key: {SECRET}",
        f"{{'Authorization': 'Bearer {SECRET}', 'Accept': '*/*'}}",
        f"((b'Authorization', b'Basic {SECRET}'), (b'Accept', b'*/*'))",
        json.dumps({"api_token": f'a"{SECRET}'}),
        json.dumps({"inner": json.dumps({"api_token": SECRET})}),
        f"sent with bearer {SECRET}",
        f"https://hooks.slack.com/services/T0/B0/{SECRET}",
        f"https://discord.com/api/webhooks/12/{SECRET}",
        f"https://api.telegram.org/bot12:{SECRET}/sendMessage",
        f"https://x.webhook.office.com/webhookb2/{SECRET}/IncomingWebhook",
    ],
)
def test_a_secret_is_masked_wherever_it_stands(text: str) -> None:
    assert SECRET not in masked(text)
    assert MASK in masked(text)


@pytest.mark.parametrize(
    "text",
    ["https://example.org/a@b?page=2&monkey=1&author=me&keyboard=x#top",
     "mail me@example.org about https://example.org/", "robots token: freshet",
     "the key of politeness is example.org",
     "example.org is unreachable (connect, 3 times in a row)", "C:\\keys = none", ""],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_what_stands_around_a_secret_stays() -> None:
    assert masked("https://u:p@h.example/x?a=1&token=abc&b=2 (HTTP 500)") == (
        "https://***@h.example/x?a=1&token=***&b=2 (HTTP 500)"
    )


def test_a_known_secret_is_masked_without_any_sign() -> None:
    assert masked("posting to /in/9f8e7d", ["9f8e7d"]) == "posting to /in/***"


def test_values_are_masked_by_their_names_and_in_depth() -> None:
    line = {
        "password": SECRET, "key": "example.org", "n": 2, "none": None,
        "list": [f"a?key={SECRET}"],
    }  # fmt: skip
    assert masked_value(line) == {
        "password": MASK, "key": "example.org", "n": 2, "none": None, "list": ["a?key=***"],
    }  # fmt: skip
    assert masked_value(ValueError(f"token={SECRET}")) == "ValueError: token=***"
    assert masked_value(f"sig={SECRET}".encode()) == "sig=***"


@given(st.text(max_size=300), st.sampled_from(NAMES), st.text(max_size=300))
def test_a_query_parameter_is_masked_in_whatever_text(before: str, name: str, after: str) -> None:
    assert SECRET not in masked(f"{before} https://h.example/?{name}={SECRET}&x={after}")


@given(st.text(max_size=300))
def test_masking_twice_masks_no_more(text: str) -> None:
    assert masked(masked(text)) == masked(text)
