"""`freshet config show` prints the settings in effect and where they came from."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.config.loading import load
from freshet.crawler.cli.config import toml_value
from freshet.crawler.cli.options import overruled
from tests.console import freshet, shown
from tests.integration.quick import quick


def show(*arguments: str) -> str:
    return shown("config", "show", *arguments)


@pytest.fixture(autouse=True)
def nobodys_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize("arguments", [(), ("--origin",)])
def test_the_output_is_a_configuration_file_that_means_the_same(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRESHET_NETWORK__RESOLVE", '{"a.example" = "127.0.0.1"}')
    monkeypatch.setenv("FRESHET_NETWORK__ALLOW_NETWORKS", '["10.0.0.0/8", "fd00::/8"]')
    shown, _ = load(None, {})
    file = tmp_path / "shown.toml"
    file.write_text(show(*arguments), "utf-8")
    monkeypatch.delenv("FRESHET_NETWORK__RESOLVE")
    monkeypatch.delenv("FRESHET_NETWORK__ALLOW_NETWORKS")
    assert load(file, {})[0] == shown


def test_every_setting_stands_on_one_line() -> None:
    names = [line.split(" = ")[0] for line in show().splitlines()]
    assert names == list(load(None, {})[1])


def test_each_value_tells_its_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "my.toml"
    file.write_text("crawl.max_pages = 7\npoliteness.delay_s = 9\n", "utf-8")
    monkeypatch.setenv("FRESHET_POLITENESS__DELAY_S", "2")
    origins = {
        line.split(" = ")[0]: line.rpartition("  # ")[2]
        for line in show("--origin", "--config", str(file)).splitlines()
    }
    assert origins["crawl.max_pages"] == f"file {file}"
    assert origins["politeness.delay_s"] == "environment FRESHET_POLITENESS__DELAY_S"
    assert origins["crawl.scope"] == "default"


def test_json_is_one_object_on_one_line_with_origins_on_request() -> None:
    plain, told = show("--json"), show("--json", "--origin")
    assert plain.count("\n") == told.count("\n") == 1
    assert list(json.loads(plain)) == ["settings"]
    assert json.loads(plain)["settings"]["crawl"]["max_redirects"] == 10
    assert json.loads(told)["origins"]["crawl.max_redirects"] == "default"


def test_a_wrong_setting_is_one_line_and_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRESHET_POLITENESS__DELAY_S", "-1")
    result = freshet("config", "show")
    assert result.exit_code == 2
    assert "politeness.delay_s" in result.stderr
    assert result.stderr.count("\n") == 1


# As in the settings: no null, no infinity; TOML has no surrogates.
numbers = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | numbers | words,
    lambda inner: st.lists(inner) | st.dictionaries(words, inner),
    max_leaves=10,
)


@given(values)
def test_a_value_is_read_back_as_it_was(value: object) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}") == {"value": value}


def test_the_store_is_that_of_the_option_else_of_the_environment_else_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "freshet.toml").write_text('db = "of-file.db"\n', "utf-8")
    assert "of-file.db" in freshet("status").stderr
    assert "of-file.db" in freshet("gc", "--config", "freshet.toml").stderr
    monkeypatch.setenv("FRESHET_DB", "of-environment.db")
    assert "of-environment.db" in freshet("status").stderr
    assert "crawl.db" in freshet("status", "--db", "crawl.db").stderr


def test_what_holds_at_a_url_is_told_with_the_table_that_says_it(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(
        'politeness.delay_s = 3\n[[sites]]\nmatch = "*.a.example"\ndelay_s = 9\n'
        '[[sites]]\nmatch = "b.a.example/docs/*"\nnever = true\ninclude = ["article"]\n'
        '[[alerts.rules]]\nname = "docs"\nmatch = "/docs/*"\nurl = "https://hooks.example/"\n'
    )
    arguments = ("--config", str(file), "--json", "--site")
    found = json.loads(show(*arguments, "b.a.example/docs/1"))["settings"]
    assert [found[key]["value"] for key in ("delay_s", "never", "include")] == [
        9,
        True,
        ["article"],
    ]
    assert found["delay_s"]["origin"] == f"file {file}, [[sites]] *.a.example"
    assert found["connections_per_host"]["origin"] == "default, politeness.connections_per_host"
    assert found["alerts.rules"] == {"value": ["docs"], "origin": f"file {file}"}
    other = json.loads(show(*arguments, "c.example"))["settings"]
    assert other["alerts.rules"] == {"value": None, "origin": "none match"}
    assert other["delay_s"] == {"value": 3, "origin": f"file {file}, politeness.delay_s"}
    assert other["never"] == {"value": None, "origin": "not set"}
    lines = show("--config", str(file), "--site", "b.a.example").splitlines()
    assert lines[0].startswith("delay_s = 9.0 ")
    assert f"# never{' ' * 37}  # not set" in lines


def test_an_option_goes_before_the_tables_of_sites() -> None:
    table = {"match": "a.example", "scope": "list", "max_depth": 3, "delay_s": 9}
    settings = quick(sites=[table])
    (left,) = overruled(settings, scope="host", max_depth=None, delay_s=0.1).sites
    assert (left.scope, left.max_depth, left.delay_s) == (None, 3, None)


def test_what_is_no_url_has_no_site() -> None:
    result = freshet("config", "show", "--site", "not a url")
    assert result.exit_code == 2
    assert "not a url" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('headers = { "X Y" = "1" }', "be the name of a header"),
        ('include = ["a["]', "[[sites]], a.example: 'a[' is not a CSS selector"),
        ("delays = 3", "sites[0].delays: there is no such key; did you mean delay_s?"),
        ("delay_s = -1", "sites[0].delay_s: input should be greater than or equal to 0"),
        ('password = "env:P"', "[[sites]] a.example: password does nothing without user"),
        ('zone = "UTC"', "zone does nothing without active_hours"),
        ('client_key = "k"', "client_key does nothing without client_certificate"),
        # A table of another site does not complete it.
        ('zone = "UTC"\n[[sites]]\nmatch = "b.example"\nactive_hours = "1-2"', "zone does nothing"),
    ],
)
def test_a_wrong_table_is_told_in_one_line(
    tmp_path: Path, table: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "freshet.toml").write_text(f'[[sites]]\nmatch = "a.example"\n{table}\n')
    monkeypatch.chdir(tmp_path)
    result = freshet("config", "show")
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_where_a_list_of_sites_belongs_is_told(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('sites = ["https://a.example/"]\n')
    said = freshet("config", "show", "--config", str(file)).stderr
    assert said.endswith(
        "sites[0]: each is a table [[sites]]; --sites names a list of sites to crawl\n"
    )


def test_a_key_may_be_completed_by_a_table_that_holds_there_too(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(
        '[[sites]]\nmatch = "*.a.example"\npassword = "env:P"\nactive_hours = "1-2"\n'
        '[[sites]]\nmatch = "b.a.example"\nuser = "b"\nzone = "UTC"\n'
        '[[sites]]\nmatch = "c.example"\nuser = "a-key"\n'
    )
    assert '"b.a.example"' in show("--config", str(file))


def test_the_token_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for token, seen in (("", ""), ("a-secret-of-20-chars", "…"), ("env:TOKEN", "env:TOKEN")):
        monkeypatch.setenv("FRESHET_OPERATION__TOKEN", token)
        assert f'operation.token = "{seen}"\n' in freshet("config", "show").stdout
    monkeypatch.setenv("FRESHET_OPERATION__TOKEN", "")
    monkeypatch.setenv("FRESHET_OPERATION__LISTEN", "0.0.0.0:1")
    assert "operation.token as well" in freshet("config", "show").stderr
