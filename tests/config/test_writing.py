"""Writing into a settings file: what it holds stays, and what would be wrong is not written."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from freshet.config import ConfigError
from freshet.config.writing import amended

FILE = Path("freshet.toml")
RULE = {"name": "price", "match": "z.example/*", "url": "json://127.0.0.1", "below": 10}

TEXTS = [
    "",
    "# only a comment\n",
    "[crawl]\n# why one\nmax_pages = 1 # for a try\n",
    "[crawl]\nmax_pages = 1",
    "[crawl]\r\nmax_pages = 1\r\n",
    "crawl.max_pages = 3\n",
    "crawl = { max_pages = 3 }\n",
    "[ crawl ]\nmax_depth = 1\n\n\n# the end\n",
    "[[sites]]\nmatch = 'a.example'\n\n[crawl]\nmax_pages = 2\n",
    "sites = [ {match = 'b.example'}, ] # two to come\n",
    "[[alerts.rules]]\nname = 'a'\nmatch = '*'\nurl = 'json://x'\n\n[crawl]\nscope = 'list'\n",
    "[alerts]\nmode = 'daily' # at six\n\n[[alerts.rules]]\nname = 'a'\nmatch = '*'\nurl = 'json://x'\n",
    "[crawl]\ncontact = 'https://old.example/' # mine\n",
    "[politeness.groups]\na = ['x']\n[crawl]\nmax_pages = 1\n[politeness]\ndelay_s = 2\n",
    'db = "é.db" # ü\n[crawl]\nmax_pages = 1\n',
]


def comments(text: str) -> set[str]:
    return {line.partition("#")[2].strip() for line in text.splitlines() if "#" in line}


def expected(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


@pytest.mark.parametrize("text", TEXTS)
def test_a_value_is_set_and_all_else_stays(text: str) -> None:
    found = amended(text, FILE, {"crawl.contact": "mailto:me@example.org"})
    wanted = expected(text)
    wanted.setdefault("crawl", {})["contact"] = "mailto:me@example.org"
    assert tomllib.loads(found) == wanted
    assert comments(found) == comments(text)


@pytest.mark.parametrize("text", TEXTS)
def test_tables_come_last_in_their_lists_and_all_else_stays(text: str) -> None:
    site = {"match": "z.example/*", "importance": 2.5}
    found = amended(text, FILE, {}, {"sites": [site], "alerts.rules": [RULE]})
    wanted = expected(text)
    wanted.setdefault("sites", []).append(site)
    wanted.setdefault("alerts", {}).setdefault("rules", []).append(RULE)
    assert tomllib.loads(found) == wanted
    assert comments(found) == comments(text)


@pytest.mark.parametrize(
    ("text", "values", "tables", "said"),
    [
        ("[crawl\n", {"crawl.max_pages": 1}, {}, "is not TOML"),
        ("[crawl]\nmax_pagse = 1\n", {"crawl.max_pages": 1}, {}, "is not a setting"),
        ("", {"crawl.max_pages": -1}, {}, "crawl.max_pages = -1"),
        ("", {"crawl.max_page": 1}, {}, "did you mean crawl.max_pages?"),
        ("", {"crawl.contact": "me"}, {}, "should be a mail address"),
        ("", {}, {"sites": [{"match": "a b"}]}, "sites[0].match"),
        ("", {}, {"sites": [{"match": "a.example", "evry": 1}]}, "there is no such key"),
        ("", {}, {"alerts.rules": [RULE, RULE]}, "price occurs twice"),
        ("crawl = 5\n", {"crawl.max_pages": 1}, {}, "it is a group"),
        ("sites = 5\n", {}, {"sites": [{"match": "a.example"}]}, "sites"),
    ],
)  # fmt: skip
def test_what_would_be_wrong_is_refused_in_one_line(
    text: str, values: dict[str, object], tables: dict[str, list[dict[str, object]]], said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        amended(text, FILE, values, tables)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


SITES = [
    "[[sites]]\nmatch = 'a.example' # the first\nimportance = 2 # for a try\n",
    "# ours\n[[sites]]\nmatch = 'a.example'\nnever = true\n\n# next\n[[sites]]\nmatch = 'b'\n",
    "sites = [{match = 'a.example', never = true}, {match = 'b.example'}] # two\n",
    "[[sites]]\nmatch = 'b.example'\n\n[crawl]\nmax_pages = 2 # few\n",
    "",
]


@pytest.mark.parametrize("text", SITES)
@pytest.mark.parametrize("changed", [{"importance": 3.5}, {"never": None}, {"never": False}])
def test_keys_of_a_table_are_set_and_removed_and_all_else_stays(
    text: str, changed: dict[str, object]
) -> None:
    found = tomllib.loads(amended(text, FILE, {}, keys={"sites": {"a.example": changed}}))
    wanted = expected(text)
    tables = wanted.setdefault("sites", [])
    here = next((it for it in tables if it["match"] == "a.example"), {"match": "a.example"})
    if here not in tables:
        tables.append(here)
    here |= changed
    rest = [{k: v for k, v in it.items() if v is not None} for it in tables]
    wanted["sites"] = [it for it in rest if it != {"match": "a.example"}]
    others = {name: table for name, table in found.items() if name != "sites"}
    assert others == {name: table for name, table in wanted.items() if name != "sites"}
    assert [it for it in found.get("sites", []) if it != {"match": "a.example"}] == wanted["sites"]


def test_a_table_that_says_nothing_goes_and_one_with_a_comment_stays() -> None:
    text = amended("", FILE, {}, keys={"sites": {"a.example": {"never": True}}})
    assert amended(text, FILE, {}, keys={"sites": {"a.example": {"never": None}}}).strip() == ""
    commented = amended(SITES[1], FILE, {}, keys={"sites": {"a.example": {"never": None}}})
    assert comments(commented) == {"ours", "next"}


def test_a_value_is_removed() -> None:
    text = "[crawl]\n# why\nmax_pages = 1\nscope = 'list' # mine\n"
    found = amended(text, FILE, {"crawl.max_pages": None, "crawl.max_depth": None})
    assert found == "[crawl]\n# why\nscope = 'list' # mine\n"


def test_a_table_is_removed_and_no_comment_of_another_one() -> None:
    text = amended("[crawl]\nmax_pages = 1 # few\n", FILE, {}, {"alerts.rules": [RULE]})
    gone = {"alerts.rules": {"price": None}}
    assert tomllib.loads(amended(text, FILE, {}, keys=gone)) == {"crawl": {"max_pages": 1}}
    with pytest.raises(ConfigError, match="a comment follows table 1"):
        amended(f"{text}# about the next\n", FILE, {}, keys=gone)
