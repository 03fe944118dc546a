"""`freshet watch`: what it chooses on a page, what it writes, and wrong input."""

from pathlib import Path

import pytest
import typer

from freshet.config.loading import load
from freshet.crawler.extensions.alerts.cli.watch import (
    PageLook,
    WatchTarget,
    WatchWish,
    address,
    choose,
    tables,
)
from freshet.crawler.reduce.offers import Offer
from tests.console import freshet

URL = "https://shop.example/tea"
NOTHING = WatchWish(None, None, None, None)
BELOW = WatchWish(10.0, None, None, None)
STATED = Offer(12.5, "12,50 €", "p.price", "", is_stated=True)
OTHER = Offer(9.99, "9,99 €", "p.also", "", is_stated=False)


def written(
    *watched: WatchTarget, wish: WatchWish = NOTHING, **said: object
) -> dict[str, list[object]]:
    chosen: dict[str, object] = {"every": None, "notify": "log:", "daily": False} | said
    made = tables(watched, wish=wish, settings=load(None, {})[0], **chosen)  # type: ignore[arg-type]
    return {name: list(rows) for name, rows in made.items()}


# -- choosing ----------------------------------------------------------------


@pytest.mark.parametrize("wish", [NOTHING, BELOW, WatchWish(None, 20.0, None, None)])
def test_without_a_terminal_the_first_price_is_taken_and_that_is_said(
    wish: WatchWish, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PageLook(URL, offers=(STATED, OTHER), stated=(12.5,), texts=("Tea", "12,50 €"))
    it = choose(page, wish, ask=False)
    assert (it.value, it.selector) == (12.5, "p.price")
    assert "took the first of 2 prices" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (PageLook(URL, texts=("A tax of 12 percent",)), "numbers without a currency: “A tax of 12"),
        (PageLook(URL, texts=("No number",)), "no number; its text begins “No number”"),
        (PageLook(URL), "no number; its text begins “”"),
        (
            PageLook(URL, stated=(7.5,), texts=("Tea",)),
            "its data states 7.5 (schema.org), and it shows",
        ),
        (PageLook(URL, None, (OTHER,), (7.5,), ("Tea",)), "and it shows “9,99 €”"),
    ],
)
def test_a_page_without_such_a_number_ends_with_what_it_has_instead(
    page: PageLook, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        choose(page, BELOW, ask=False)
    assert ended.value.exit_code == 1
    told = capsys.readouterr().err
    assert words in told
    assert "--within SELECTOR" in told


def test_a_page_without_a_price_is_watched_for_its_text() -> None:
    it = choose(PageLook(URL, texts=("Section 1.", "The tax")), NOTHING, ask=False)
    assert (it.selector, it.value) == (None, None)
    assert "Section 1. The tax" in it.chosen


@pytest.mark.parametrize(
    ("word", "state"), [("TAX", "has “TAX” now"), ("war", "has “war” not now")]
)
def test_a_word_is_told_with_its_present_state(word: str, state: str) -> None:
    it = choose(PageLook(URL, texts=("The tax",)), WatchWish(None, None, word, None), ask=False)
    assert state in it.chosen


def test_the_first_number_of_a_named_element_counts() -> None:
    page = PageLook(URL, texts=("Seats left: 12 of 80",))
    it = choose(page, WatchWish(5.0, None, None, "#seats"), ask=False)
    assert (it.selector, it.value) == ("#seats", 12.0)


# -- settings ----------------------------------------------------------------


def test_a_price_becomes_a_table_and_a_rule() -> None:
    it = WatchTarget(URL, "", "p.price", "", 12.5)
    assert written(it, wish=BELOW) == {
        "sites": [{"match": URL, "scope": "list", "every": "1 hour", "include": ["p.price"]}],
        "alerts.rules": [
            {
                "name": "shop-example-tea", "match": [URL], "kinds": ["changed", "gone"],
                "url": "log:", "below": 10.0, "within": "p.price",
            }
        ],
    }  # fmt: skip


def test_sites_with_one_wish_share_a_rule_and_go_by_the_budget() -> None:
    two = [WatchTarget(f"https://{name}.example/*", "") for name in ("law", "gazette")]
    assert written(*two, daily=True, notify="mailto://x") == {
        "sites": [],
        "alerts.rules": [
            {
                "name": "law-example", "match": [it.match for it in two],
                "kinds": ["new", "changed", "gone"], "url": "mailto://x", "mode": "daily",
            }
        ],
    }  # fmt: skip


def test_names_of_rules_are_free_and_fit() -> None:
    pages = [WatchTarget(f"https://a.example/{'x' * 80}", "", f"#a{n}", "", 1.0) for n in range(3)]
    rules = written(*pages, wish=BELOW)["alerts.rules"]
    names = [rule["name"] for rule in rules]  # type: ignore[index]
    assert len(set(names)) == 3
    assert all(len(name) <= 64 for name in names)


@pytest.mark.parametrize("to", ["https://hooks.example/x", "slack://a/b/c", "log:"])
def test_other_addresses_than_of_mail_stand_as_given(to: str) -> None:
    assert address(to) == to


def test_without_an_address_alerts_go_to_the_log() -> None:
    assert address(None) == "log:"


# -- wrong input -------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["http://"], 2, "http://"),
        (["http://127.0.0.1:2/x"], 1, "unreachable"),
        (["https://shop.example/tea"], 2, "--contact"),
        (["http://127.0.0.1:2/x", "--below", "cheap"], 2, "--below"),
        (["http://127.0.0.1:2/x", "--config", "none.toml"], 2, "none.toml"),
        (["http://127.0.0.1:2/x", "--every", "sometimes"], 2, "sometimes"),
        (["http://127.0.0.1:2/x", "--every", "0 hours"], 2, "0 hours"),
        (["http://127.0.0.1:2/x", "--notify", "somewhere"], 2, "--notify"),
        (["http://127.0.0.1:2/x", "--notify", "nonsense://x"], 2, "--notify"),
        (["http://127.0.0.1:2/x", "--within", "a["], 2, "--within"),
        (["http://127.0.0.1:2/x", "--contains", " "], 2, "--contains"),
        (["http://127.0.0.1:2/*", "--below", "3"], 2, "without *"),
    ],
)
def test_wrong_input_is_told_and_writes_nothing(
    arguments: list[str], code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = freshet("watch", *arguments, "--db", "c.db")
    assert (result.exit_code, words in result.stderr) == (code, True), result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["[crawl", 'sites = "x"', "[crawl]\nmax_page = 3"])
def test_a_wrong_settings_file_stays_as_it_is(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "freshet.toml").write_text(file)
    result = freshet("watch", "http://127.0.0.1:2/x", "--db", "c.db")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert (tmp_path / "freshet.toml").read_text() == file
