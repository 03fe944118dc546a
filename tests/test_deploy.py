"""What is shipped to run a daemon as a service holds together with what the daemon does."""

import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from freshet.config.loading import load
from freshet.crawler.service.metrics import DOCUMENTATION, Metrics

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "scripts/deploy"


def metric_names() -> set[str]:
    """All series that a scrape can hold."""
    metrics = Metrics("1")
    metrics.stand(
        lambda: dict.fromkeys([*DOCUMENTATION["counters"], *DOCUMENTATION["gauges"]], 1.0)
    )
    names = set()
    for family in metrics.registry.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
        names |= {family.name + end for end in suffixes.get(family.type, ("",))}
    return names


def expressions(value: object) -> list[str]:
    """The queries of a dashboard, wherever they stand."""
    if isinstance(value, list):
        return [found for each in value for found in expressions(each)]
    if isinstance(value, dict):
        own = [value["expr"]] if isinstance(value.get("expr"), str) else []
        return own + [found for each in value.values() for found in expressions(each)]
    return []


def dashboard() -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = json.loads(
        (DEPLOY / "grafana-dashboard.json").read_text("utf-8")
    )
    return found


def test_the_dashboard_asks_for_metrics_that_there_are_and_shows_all_of_ours() -> None:
    asked = {
        name
        for each in expressions(dashboard())
        for name in re.findall(r"\b((?:freshet|process)_\w+)", each)
    }
    assert asked - metric_names() == set()
    ours = {name for name in metric_names() if name.startswith("freshet_")}
    histograms = {name for name in ours if name.endswith(("_bucket", "_sum", "_count"))}
    assert ours - histograms - asked == set()


def test_every_panel_takes_the_data_source_that_is_chosen_and_has_a_place_of_its_own() -> None:
    panels = dashboard()["panels"]
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert {json.dumps(p["datasource"]) for p in panels if p["type"] != "row"} == {
        json.dumps(chosen)
    }
    assert len({p["id"] for p in panels}) == len(panels)
    cells = [
        (x, y)
        for p in panels
        if isinstance(g := p["gridPos"], dict)
        for x in range(g["x"], g["x"] + g["w"])
        for y in range(g["y"], g["y"] + g["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "freshet.service")
    return parser


def environment(lines: list[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines)


def test_unit_and_container_set_settings_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DEPLOY / "freshet.service").read_text("utf-8")
    of_unit = environment(re.findall(r"^Environment=(FRESHET_\S+)$", text, re.MULTILINE))
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    of_container = environment(re.findall(r"(FRESHET_\w+=\S+?)(?: \\)?$", text, re.MULTILINE))
    for found in (of_unit, of_container):
        with monkeypatch.context() as patch:
            for name, value in found.items():
                patch.setenv(name, value)
            settings, _ = load(None, {})
        assert settings.operation.endpoint == ("127.0.0.1", 9464)
        assert settings.operation.log_format == "json"


def test_the_unit_lets_the_daemon_write_its_store_only() -> None:
    service = unit()["Service"]
    assert (service["Type"], service["ProtectSystem"], service["NoNewPrivileges"]) == (
        "notify", "strict", "yes",
    )  # fmt: skip
    assert "--db %S/freshet/" in service["ExecStart"]
    assert (service["StateDirectory"], service.get("CacheDirectory")) == ("freshet", None)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "freshet.service").read_text("utf-8")
    there = tmp_path / "freshet.service"
    there.write_text(text.replace("/opt/freshet/bin/freshet", "/bin/true"))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(there)],
        text=True, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (checked.returncode, checked.stderr) == (0, "")


def instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    parts = [line.split(maxsplit=1) for line in lines if line.strip()]
    return [(word, " ".join(rest.split())) for word, rest in parts]


def test_the_container_runs_as_nobody_in_particular_from_what_is_locked() -> None:
    found = instructions()
    images = dict(rest.split("=", 1) for word, rest in found if word == "ARG")
    assert re.fullmatch(r"\S+:3\.12-slim@sha256:[0-9a-f]{64}", images["PYTHON"])
    assert [rest.split()[0] for word, rest in found if word == "FROM"] == ["${PYTHON}"] * 2
    assert {word for word, _ in found} <= {
        "ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL",
        "HEALTHCHECK", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    last = dict(found)  # of the last stage
    assert last["USER"] == "freshet"
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert json.loads(last["VOLUME"]) == ["/data"]
    installs = [rest for word, rest in found if word == "RUN" and "pip install" in rest]
    assert all("--require-hashes" in each or "--no-deps" in each for each in installs)
    command = json.loads(last["ENTRYPOINT"]) + json.loads(last["CMD"])
    assert command[:2] == ["freshet", "daemon"]
    for word, rest in found:
        if word == "COPY" and "--from" not in rest:
            assert [p for p in rest.split()[:-1] if not (ROOT / p).exists()] == []


def test_the_health_check_of_the_container_is_a_program() -> None:
    check = dict(instructions())["HEALTHCHECK"]
    program = json.loads(check[check.index("[") :])
    assert program[:2] == ["python", "-c"]
    compile(program[2], "HEALTHCHECK", "exec")
    assert "http://127.0.0.1:9464/healthz" in program[2]


def test_what_is_locked_for_running_has_no_tool_of_developers() -> None:
    printed = subprocess.run(
        [sys.executable, str(DEPLOY / "locked.py")], text=True, capture_output=True, check=True
    ).stdout
    names = set(re.findall(r"^([a-z0-9.-]+)==", printed, re.MULTILINE))
    assert {"aiohttp", "numpy", "prometheus-client", "multidict"} <= names
    assert not {"pytest", "mypy", "ruff", "matplotlib", "duckdb", "hatchling"} & names
    entries = re.findall(r"^[a-z0-9.-]+==.*?(?=^[a-z0-9]|\Z)", printed, re.MULTILINE | re.DOTALL)
    assert all("--hash=sha256:" in entry for entry in entries)


@pytest.mark.parametrize(
    ("version", "events", "faulty"),
    [
        ("1.4", [{"introduced": "0"}, {"fixed": "1.5"}], True),
        ("1.5", [{"introduced": "0"}, {"fixed": "1.5"}], False),
        ("2.1", [{"introduced": "0"}, {"fixed": "1.5"}, {"introduced": "2"}], True),
        ("2.1", [{"introduced": "1"}, {"last_affected": "2.1"}], True),
        ("2.2", [{"introduced": "1"}, {"last_affected": "2.1"}], False),
    ],
)
def test_the_audit_names_locked_versions_with_advisories(
    tmp_path: Path, version: str, events: list[dict[str, str]], faulty: bool
) -> None:
    lock, file = tmp_path / "lock", tmp_path / "all.zip"
    lock.write_text(f"other==1.4 \\\n    --hash=sha256:00\nodd-name=={version} \\\n")
    advisory = {
        "id": "PYSEC-1",
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": "Odd_Name"},
                "ranges": [{"type": "ECOSYSTEM", "events": events}],
            }
        ],
    }
    with ZipFile(file, "w") as archive:
        archive.writestr("PYSEC-1.json", json.dumps(advisory))
    command = [sys.executable, "-m", "scripts.auditing", str(file), "--lock", str(lock)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == int(faulty), result.stderr
    assert (f"odd-name {version}: PYSEC-1" in result.stdout) == faulty
