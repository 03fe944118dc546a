"""Loading: precedence, origins, and errors of one line that help."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.config import ConfigError
from freshet.config.loading import load, outdated, recorded


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory and user, without settings in the environment."""
    for variable in os.environ:
        if variable.startswith("FRESHET_"):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(file: Path | None = None, **overrides: object) -> str:
    with pytest.raises(ConfigError) as caught:
        load(file, {name.replace("__", "."): value for name, value in overrides.items()})
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_without_any_source_every_setting_is_a_default() -> None:
    settings, origins = load(None, {})
    assert settings.crawl.product == "Freshet"
    assert set(origins.values()) == {"default"}
    assert "politeness.delay_s" in origins


def test_each_source_gives_way_to_the_stronger_ones(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(
        place / "my.toml", "[crawl]\nmax_pages = 1\nattempts = 1\n[politeness]\ndelay_s = 1.5\n"
    )
    monkeypatch.setenv("FRESHET_CRAWL__MAX_PAGES", "2")
    monkeypatch.setenv("FRESHET_CRAWL__ATTEMPTS", "2")
    settings, origins = load(file, {"crawl.max_pages": 3})
    assert (settings.crawl.max_pages, origins["crawl.max_pages"]) == (3, "command line")
    assert settings.crawl.attempts == 2
    assert origins["crawl.attempts"] == "environment FRESHET_CRAWL__ATTEMPTS"
    assert (settings.politeness.delay_s, origins["politeness.delay_s"]) == (1.5, f"file {file}")
    assert (settings.politeness.slow_cap_s, origins["politeness.slow_cap_s"]) == (30.0, "default")


USERS = "xdg/freshet/config.toml"


def test_the_users_own_file_is_read_below_the_one_in_the_working_directory(place: Path) -> None:
    written(place / USERS, "[crawl]\nmax_pages = 1\nattempts = 5\n[politeness]\ndelay_s = 3\n")
    assert load(None, {})[0].crawl.max_pages == 1
    written(place / "freshet.toml", "[crawl]\nmax_pages = 2\n")
    settings, origins = load(None, {})
    assert (settings.crawl.max_pages, origins["crawl.max_pages"]) == (2, "file freshet.toml")
    assert (settings.crawl.attempts, origins["crawl.attempts"]) == (5, f"file {place / USERS}")
    assert settings.politeness.delay_s == 3


def test_a_file_that_was_named_takes_the_place_of_the_one_in_the_working_directory(
    place: Path,
) -> None:
    written(place / USERS, "[crawl]\npatience_s = 9\nmax_pages = 1\n")
    written(place / "freshet.toml", "[crawl]\nattempts = 7\n")
    named = written(place / "named.toml", "[crawl]\nmax_pages = 2\n")
    crawl = load(named, {})[0].crawl
    assert (crawl.max_pages, crawl.attempts, crawl.patience_s) == (2, 3, 9)


@pytest.mark.parametrize("strong", ["freshet.toml", "named.toml"])
@pytest.mark.parametrize(
    ("own", "other", "name", "value"),
    [
        ("[crawl]\ncontact = 'a@a.example'", "[crawl]\nscope = 'list'",
         "crawl.contact", "mailto:a@a.example"),
        ("[crawl]\ncontact = 'a@a.example'", "[crawl]\ncontact = ''", "crawl.contact", ""),
        ("[crawl]\ncontact = 'a@a.example'", "", "crawl.contact", "mailto:a@a.example"),
        ("db = 'mine.db'", "[crawl]\nscope = 'list'", "db", Path("mine.db")),
        ("db = 'mine.db'", "db = 'theirs.db'", "db", Path("theirs.db")),
        ("[politeness.groups]\na = ['a.example']", "[politeness.groups]\nb = ['b.example']",
         "politeness.groups", {"b": ("b.example",)}),
        ("[daemon]\nbudget = '9/day'", "[daemon]\npolicy = 'uniform'", "daemon.budget", "9/day"),
        ("[daemon]\nbudget = '9/day'", "[daemon]\nbudget = '8/day'", "daemon.budget", "8/day"),
        ("crawl.max_depth = 4", "crawl = { max_pages = 2 }", "crawl.max_depth", 4),
        ("[operation]\nlisten = '127.0.0.1:1'", "[operation]\nlog_format = 'json'",
         "operation.listen", "127.0.0.1:1"),
    ],
)  # fmt: skip
def test_each_key_is_that_of_the_strongest_file_that_has_it(
    place: Path, strong: str, own: str, other: str, name: str, value: object
) -> None:
    written(place / USERS, own)
    file = written(place / strong, other)
    found: object = load(file if strong == "named.toml" else None, {})[0]
    for part in name.split("."):
        found = getattr(found, part)
    assert found == value


def test_tables_of_sites_are_all_those_of_the_strongest_file(place: Path) -> None:
    written(place / USERS, "[[sites]]\nmatch = 'a.example'\n")
    assert len(load(None, {})[0].sites) == 1
    written(
        place / "freshet.toml", "[[sites]]\nmatch = 'b.example'\n[[sites]]\nmatch = 'c.example'\n"
    )
    assert [each.match for each in load(None, {})[0].sites] == ["b.example", "c.example"]


def test_a_fault_of_the_users_own_file_is_told_with_its_path(place: Path) -> None:
    own = written(place / USERS, "[crawl]\nmax_pagse = 1\n")
    named = written(place / "named.toml", "[crawl]\nmax_pages = 2\n")
    assert refusal(named).startswith(f"file {own}: crawl.max_pagse is not a setting")


def test_nobodys_home_has_no_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    assert load(None, {})[1]["crawl.contact"] == "default"


def test_a_relative_xdg_directory_is_ignored(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", "xdg")
    written(place / "xdg/freshet/config.toml", "[crawl]\nmax_pages = 1\n")
    written(place / "home/.config/freshet/config.toml", "[crawl]\nmax_pages = 2\n")
    assert load(None, {})[0].crawl.max_pages == 2


def test_tables_are_replaced_and_not_merged(place: Path) -> None:
    file = written(place / "a.toml", "[politeness.groups]\na = ['a.example']\n")
    settings, _ = load(file, {"politeness.groups": '{ b = ["b.example"] }'})
    assert settings.politeness.groups == {"b": ("b.example",)}


def test_variables_that_are_not_settings_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRESHET_SOMETHING_ELSE", "1")
    assert set(load(None, {})[1].values()) == {"default"}


@pytest.mark.parametrize(
    ("text", "wrong", "meant"),
    [
        ("[crawl]\nmax_pagse = 1", "crawl.max_pagse", "crawl.max_pages"),
        ("[crwl]\nmax_redirects = 1", "crwl.max_redirects", "crawl.max_redirects"),
        ("[crawl]\ndelay_s = 1", "crawl.delay_s", "politeness.delay_s"),
        ("max_pages = 1", "max_pages", "crawl.max_pages"),
        ("[robots]\nmaxage = 1", "robots.maxage", "robots.max_age_s"),
    ],
)
def test_an_unknown_key_in_a_file_names_the_nearest(
    place: Path, text: str, wrong: str, meant: str
) -> None:
    file = written(place / "a.toml", text)
    assert refusal(file) == f"file {file}: {wrong} is not a setting; did you mean {meant}?"


def test_a_key_like_no_other_points_to_the_list(place: Path) -> None:
    assert "`freshet config show`" in refusal(written(place / "a.toml", "[q]\nzzzz = 1"))


def test_a_group_that_is_not_a_table_says_so(place: Path) -> None:
    file = written(place / "a.toml", "crawl = 5")
    assert refusal(file).endswith("it is a group, with settings such as crawl.product")


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("FRESHET_CRAWL__MAXPAGES", "did you mean crawl.max_pages?"),
        ("FRESHET_CRWL__MAX_PAGES", "did you mean crawl.max_pages?"),
        ("FRESHET_CRAWL", "it is a group"),
    ],
)
def test_an_unknown_variable_is_named(
    variable: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "5")
    message = refusal()
    assert message.startswith(f"environment {variable}: ")
    assert meant in message


def test_an_unknown_override_is_refused() -> None:
    assert "did you mean crawl.max_pages?" in refusal(crawl__max_page=1)


OLD = "daemon.new_page_worth"


def test_a_former_name_is_read_and_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(
        place / "my.toml",
        "[crawl]\nexchanges = 7\n[daemon]\nnew_page_worth = 2\nleast_discovery = 0.1\n"
        "most_discovery = 0.5\n[ephemeral]\nitem_worth = 3\n",
    )
    settings, origins = load(file, {})
    daemon = settings.daemon
    assert settings.crawl.concurrent_requests == 7
    assert (daemon.new_page_value, daemon.min_discovery, daemon.max_discovery) == (2, 0.1, 0.5)
    assert settings.ephemeral.item_value == 3
    lines = [*outdated(origins)]
    assert len(lines) == 5
    assert f"file {file}: {OLD} is now daemon.new_page_value; rename it there" in lines
    monkeypatch.setenv("FRESHET_DAEMON__NEW_PAGE_WORTH", "5")
    settings, origins = load(file, {})
    assert settings.daemon.new_page_value == 5
    assert origins["daemon.new_page_value"].startswith("environment FRESHET_DAEMON__NEW_PAGE_WORTH")
    assert sum(line.startswith("environment") for line in outdated(origins)) == 1
    assert [*outdated(load(None, {"daemon.new_page_value": 1})[1])] == []
    # What a run of an older version recorded.
    was = {"db": settings.db, **settings.model_dump()}
    was["daemon"][OLD.partition(".")[2]] = was["daemon"].pop("new_page_value")
    assert recorded(was) == settings


def test_a_wrong_value_under_a_former_name_is_named_as_it_was_written(place: Path) -> None:
    file = written(place / "my.toml", "[daemon]\nnew_page_worth = -1\n")
    assert refusal(file).startswith(f"file {file}, as {OLD}: daemon.new_page_value = -1: ")


def test_a_setting_that_is_none_any_more_is_read_over_and_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(place / "my.toml", "[fetch]\nmax_headers = 5\n[store]\nzstd_level = 9\n")
    monkeypatch.setenv("FRESHET_PARSE__INLINE_BYTES", "0")
    settings, origins = load(file, {})
    assert settings == load(None, {})[0]
    first, second, third = sorted(outdated(origins))
    assert first.startswith("environment FRESHET_PARSE__INLINE_BYTES: parse.inline_bytes is not ")
    assert second.startswith(f"file {file}: fetch.max_headers is not ")
    assert third == (
        f"file {file}: store.zstd_level is not a setting any more: "
        "bodies are stored at zstd's level 3; delete it"
    )
    was = {"db": settings.db, **settings.model_dump()}
    was["store"]["zstd_level"] = 9
    assert recorded(was) == settings


def test_a_setting_under_both_names_is_refused(place: Path) -> None:
    file = written(place / "my.toml", "[daemon]\nnew_page_worth = 1\nnew_page_value = 1\n")
    assert refusal(file) == (
        f"file {file}: {OLD} is now daemon.new_page_value, which is set as well; delete it"
    )


def test_a_wrong_value_says_where_what_and_what_is_accepted(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(place / "a.toml", "[crawl]\nscope = 'web'")
    accepted = "input should be 'host', 'domain', 'prefix' or 'list'"
    assert refusal(file) == f"file {file}: crawl.scope = 'web': {accepted}"
    monkeypatch.setenv("FRESHET_POLITENESS__DELAY_S", "-1")
    assert refusal() == (
        "environment FRESHET_POLITENESS__DELAY_S: politeness.delay_s = '-1': "
        "input should be greater than or equal to 0"
    )
    assert refusal(politeness__delay_s=-2).startswith("command line: politeness.delay_s = -2: ")


def test_further_errors_are_counted(place: Path) -> None:
    file = written(place / "a.toml", "[crawl]\nmax_pages = -1\nattempts = -1")
    assert refusal(file).endswith("(and 1 more)")


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(refusal(crawl__product="a b" * 1000)) < 200


def test_a_file_that_is_not_toml_is_refused_with_its_line(place: Path) -> None:
    file = written(place / "a.toml", "[crawl]\nmax_pages = \n")
    assert refusal(file).startswith(f"file {file} is not TOML: ")
    assert "line 2" in refusal(file)
    for text in ("a = " + "[" * 100_000, "a" + ".a" * 100_000, "#" * (1 << 21)):
        file.write_text(text)
        assert (
            refusal(file) == f"file {file} is nested too deeply, or larger than 1 MiB; shorten it"
        )
    file.write_text("a = " + "9" * 5_000)
    assert refusal(file).startswith(f"file {file} is not TOML: ")


def test_a_file_that_cannot_be_read_is_refused(place: Path) -> None:
    assert refusal(place / "none.toml").endswith(
        "No such file or directory; check its path and permissions"
    )
    (place / "latin.toml").write_bytes(b"# caf\xe9")
    assert refusal(place / "latin.toml").endswith("is not UTF-8 at byte 5; save it as UTF-8")
    with pytest.raises(ConfigError, match=r"archive.dir is not UTF-8; write"):
        load(None, {"archive.dir": "\udcff"})


@given(st.text(), st.text())
def test_no_override_gets_past_as_another_error(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, {f"crawl.{name}": "-1", "crawl.max_pages": f"x{value}"})
    assert "\n" not in str(caught.value)
