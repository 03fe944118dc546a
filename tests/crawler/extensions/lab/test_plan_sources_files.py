"""Sources come from CSV and Parquet alike, and what is wrong in them is one line."""

import importlib.util
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.extensions.lab import plan_sources
from freshet.crawler.extensions.lab.plan_sources import PlanSources

NUMBER = "a finite number of at least 0"


def csv_file(folder: Path, text: str | bytes) -> Path:
    path = folder / "sources.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def parquet_file(folder: Path, select: str) -> Path:
    path = folder / "sources.parquet"
    with duckdb.connect() as connection:
        connection.sql(select).write_parquet(str(path))
    return path


def as_lists(sources: PlanSources) -> dict[str, object]:
    return {
        "url": list(sources.url),
        "importance": sources.importance.tolist(),
        "change_rate": sources.change_rate.tolist(),
        "complete_observations": sources.complete_observations.tolist(),
        "host": [sources.hosts[row] for row in sources.host],
    }


def assert_refused(path: Path, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan_sources.read_sources(path)
    assert str(refused.value).startswith(f"{path}: {told}")
    assert "\n" not in str(refused.value)


def test_url_and_change_rate_are_enough(tmp_path: Path) -> None:
    text = "change_rate,url\n0.5,https://a.example/1\n2,http://b.example:81/\n"
    assert as_lists(plan_sources.read_sources(csv_file(tmp_path, text))) == {
        "url": ["https://a.example/1", "http://b.example:81/"], "importance": [1.0, 1.0],
        "change_rate": [0.5, 2.0], "complete_observations": [False, False],
        "host": ["https://a.example", "http://b.example:81"],
    }  # fmt: skip


def test_the_host_of_a_url_is_that_of_a_browser(tmp_path: Path) -> None:
    urls = [
        "http:////a.example/", "http:////b.example/", "https:c.example/x", "HTTPS://C.example:443",
    ]  # fmt: skip
    text = "url,change_rate\n" + "".join(f"{url},1\n" for url in urls)
    sources = plan_sources.read_sources(csv_file(tmp_path, text))
    assert [sources.hosts[row] for row in sources.host] == [
        "http://a.example", "http://b.example", "https://c.example", "https://c.example",
    ]  # fmt: skip


def test_all_columns_are_taken_as_they_are(tmp_path: Path) -> None:
    csv = csv_file(
        tmp_path,
        "url,importance,change_rate,host,complete_observations\n"
        '"https://a.example/?q=1,2",3,0,one,TRUE\nhttps://a.example/2,0,1e-3,one,0\n',
    )
    parquet = parquet_file(
        tmp_path,
        "SELECT * FROM (VALUES ('https://a.example/?q=1,2', 3::UTINYINT, 0.0::DECIMAL(5, 3),"
        " 'one', true), ('https://a.example/2', 0, 0.001, 'one', false))"
        " AS t(url, importance, change_rate, host, complete_observations)",
    )
    expected = {
        "url": ["https://a.example/?q=1,2", "https://a.example/2"], "importance": [3.0, 0.0],
        "change_rate": [0.0, 0.001], "complete_observations": [True, False],
        "host": ["one", "one"],
    }  # fmt: skip
    assert as_lists(plan_sources.read_sources(csv)) == expected
    assert as_lists(plan_sources.read_sources(parquet)) == expected


def test_a_byte_order_mark_carriage_returns_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    text = "\ufeffurl, change_rate\r\n\r\nhttps://a.example/,1\r\n\r\n"
    assert list(plan_sources.read_sources(csv_file(tmp_path, text)).url) == ["https://a.example/"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty; accepted is a line of column names and rows"),
        ("url,change_rate\n", "has no rows; it needs one for each source"),
        ("url,change_rate,age\n", "column 'age' is not known; accepted are url, change_rate, "),
        ("url,importance\n", "column 'change_rate' is missing; accepted are url, change_rate, "),
        ("url;change_rate\n", "column 'url;change_rate' is not known; accepted are "),
        ("url,url,change_rate\n", "column 'url' is there 2 times"),
        ("url,change_rate\nhttps://a.example/\n", "line 2: has 1 fields; accepted are 2"),
        ("url,change_rate\n,1\n", "line 2: url: is ''; accepted is an absolute http or https URL"),
        ("url,change_rate\na.example,1\n", "line 2: url: is 'a.example'; accepted is an absolute"),
        ("url,change_rate\nhttps://a.example/1,1\n\nhttps://a.example/2,often\n",
         f"line 4: change_rate: is 'often'; accepted is {NUMBER}"),
        ("url,change_rate\nhttps://a.example/1,\n",
         f"line 2: change_rate: is ''; accepted is {NUMBER}"),
        ("url,change_rate\nhttps://a.example/1,nan\n",
         f"line 2: change_rate: is nan; accepted is {NUMBER}"),
        ("url,change_rate,importance\nhttps://a.example/1,1,-inf\n",
         f"line 2: importance: is -inf; accepted is {NUMBER}"),
        ("url,change_rate,importance\nhttps://a.example/1,1,-0.5\n",
         f"line 2: importance: is -0.5; accepted is {NUMBER}"),
        ("url,change_rate,host\nhttps://a.example/1,1,\n",
         "line 2: host: is ''; accepted is a name"),
        ("url,change_rate,complete_observations\nhttps://a.example/1,1,maybe\n",
         "line 2: complete_observations: is 'maybe'; accepted is true or false"),
        ('url,change_rate\nhttps://a.example/1,1\n"https://a.example/2\n",1\n',
         r"line 4: url: is 'https://a.example/2\n'; accepted is an absolute http or https URL"),
        ("url,change_rate\nhttps://a.example/1,1\n\nhttps://a.example/1,2\n",
         "line 4: url: is 'https://a.example/1'; accepted is each URL once, and line 2 has it"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_csv_is_one_line_with_its_place(
    tmp_path: Path, text: str, told: str
) -> None:
    assert_refused(csv_file(tmp_path, text), told)


@pytest.mark.parametrize(
    ("select", "told"),
    [
        ("SELECT 'https://a.example/' AS url", "column 'change_rate' is missing; accepted are "),
        ("SELECT 'x' AS url, 1 AS change_rate, 2 AS age", "column 'age' is not known; accepted "),
        ("SELECT 'x' AS url, '1' AS change_rate",
         "change_rate: is of type VARCHAR; accepted are numbers"),
        ("SELECT 'x' AS url, 1 AS change_rate, 1 AS complete_observations",
         "complete_observations: is of type INTEGER; accepted are truth values"),
        (
            (
                "SELECT 'https://a.example/' || i AS url, nullif(i, 2) AS change_rate FROM range(4)"
                " AS t(i)"
            ),
            "row 3: change_rate: is null; accepted is numbers",
        ),
        ("SELECT 'https://a.example/' AS url, 'nan'::DOUBLE AS change_rate",
         f"row 1: change_rate: is nan; accepted is {NUMBER}"),
        ("SELECT 'https://a.example/' AS url, 1 AS change_rate FROM range(2)",
         "row 2: url: is 'https://a.example/'; accepted is each URL once, and row 1 has it"),
        ("SELECT 'x' AS url, 1 AS change_rate LIMIT 0", "has no rows; it needs one for each"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_parquet_file_is_one_line_with_its_place(
    tmp_path: Path, select: str, told: str
) -> None:
    assert_refused(parquet_file(tmp_path, select), told)


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    path = csv_file(tmp_path, f"url,change_rate\nhttps://a.example/,{'9' * 99}x\n")
    with pytest.raises(UsageError, match="9…; accepted"):
        plan_sources.read_sources(path)


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("s.csv", b"url,change_rate\nhttps://a.example/,1\n\xff,2\n", "line 3: is not UTF-8"),
        ("s.csv", b"url,change_rate\n" + b"x" * 200_000 + b",1\n", "line 2: is not CSV \\("),
        ("s.parquet", b"url,change_rate\n", ".*s.parquet"),
    ],
)
def test_a_file_that_is_not_what_its_ending_says_cannot_be_read(
    tmp_path: Path, name: str, data: bytes, told: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(CrawlError, match=f"^[^\n]*{name}: {told}[^\n]*$"):
        plan_sources.read_sources(path)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet"])
def test_a_file_that_is_not_there_is_told_by_its_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(CrawlError, match=f"{name}: No such file"):
        plan_sources.read_sources(tmp_path / name)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"accepted are files that end in \.csv or \.parquet"):
        plan_sources.read_sources(tmp_path / "sources.txt")


def test_a_parquet_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    """DuckDB takes names with such characters for patterns, and URLs for the network."""
    path = parquet_file(tmp_path, "SELECT 'https://a.example/' AS url, 1 AS change_rate")
    odd = path.rename(tmp_path / "it's [a*b]?.parquet")
    (tmp_path / "it's a-b!.parquet").write_bytes(b"")
    assert len(plan_sources.read_sources(odd)) == 1


def test_without_duckdb_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet_file(tmp_path, "SELECT 'https://a.example/' AS url, 1 AS change_rate")
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "freshet.crawler.extensions.lab.plan_sources.find_spec",
        lambda name: None if name == "duckdb" else found(name),
    )
    with pytest.raises(CrawlError, match="needs the extra 'parquet'"):
        plan_sources.read_sources(path)
    with pytest.raises(CrawlError, match="needs the extra 'parquet'"):
        plan_sources.check_writable(tmp_path / "plan.parquet")


def _is_name(text: str) -> bool:
    return bool(text.strip()) and text.isprintable()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.text(min_size=1, max_size=5).filter(_is_name), st.floats(0, 1e300), st.booleans()
        ),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_written_is_read_again_digit_by_digit(
    tmp_path: Path, ending: str, rows: list[tuple[str, float, bool]]
) -> None:
    path = tmp_path / f"plan.{ending}"
    hosts, rates, complete = zip(*rows, strict=True)
    plan_sources.write_plan(
        path,
        {
            "url": np.array([f"https://a.example/{i}" for i in range(len(rows))], object),
            "change_rate": np.array(rates),
            "host": np.array(hosts, object),
            "complete_observations": np.array(complete),
        },
    )
    sources = plan_sources.read_sources(path)
    assert [sources.hosts[row] for row in sources.host] == list(hosts)
    assert sources.change_rate.tolist() == list(rates)
    assert sources.complete_observations.tolist() == list(complete)


def test_a_plan_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    assert plan_sources.write_plan(path, {"url": np.array(["a"], object)}) is False
    assert (
        plan_sources.write_plan(path, {"url": np.array(["b"], object), "x": np.array([np.inf])})
        is True
    )
    assert path.read_text() == "url,x\nb,inf\n"
    with pytest.raises(UnicodeEncodeError):
        plan_sources.write_plan(path, {"url": np.array(["\ud800"], object)})
    assert path.read_text() == "url,x\nb,inf\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_where_no_plan_can_be_written_is_told_beforehand(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"accepted are files that end in"):
        plan_sources.check_writable(tmp_path / "plan.xls")
    with pytest.raises(CrawlError, match="the folder does not exist"):
        plan_sources.check_writable(tmp_path / "none" / "plan.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(CrawlError, match="not a file, so it is not replaced"):
        plan_sources.check_writable(tmp_path / "folder.csv")
    plan_sources.check_writable(tmp_path / "plan.csv")
    assert not (tmp_path / "plan.csv").exists()
