import asyncio
import json
import signal
import socket
import sys
from pathlib import Path

import aiohttp
import pytest

from freshet.crawler.synthetic_web.__main__ import main


async def start(*arguments: str) -> tuple[asyncio.subprocess.Process, dict[str, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "freshet.crawler.synthetic_web", *arguments,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    announcement = json.loads(await process.stdout.readline())
    sites: dict[str, str] = announcement["sites"]
    return process, sites


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_announces_its_sites_serves_them_and_stops_on_a_signal(
    number: signal.Signals, tmp_path: Path
) -> None:
    log = tmp_path / "exchanges.jsonl"
    process, sites = await start(
        "--preset", "plain", "--hosts", "2", "--placement", "ports", "--log", str(log)
    )
    assert list(sites) == ["h1", "h2"]
    async with aiohttp.ClientSession() as session, session.get(sites["h2"]) as response:
        assert response.status == 200
    process.send_signal(number)
    assert await process.wait() == 0
    (line,) = log.read_text().splitlines()
    assert (json.loads(line)["host"], json.loads(line)["target"]) == ("h2", "/")


def test_it_stops_by_itself_after_its_duration(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--preset", "showcase", "--no-traps", "--duration", "0", "--advance-days", "2"])
    announcement = json.loads(capsys.readouterr().out)
    assert announcement["at"] == 1_767_225_600.0 + 2 * 86_400
    assert announcement["sites"].keys() >= {"news", "old", "zoo"}


@pytest.mark.parametrize(
    "arguments",
    [["--preset", "huge"], ["--hosts", "many"], ["--pages", "0"], ["--span-days", "-1"],
     ["--what"]],
)  # fmt: skip
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage:" in capsys.readouterr().err


def test_a_port_that_is_taken_is_one_line_and_exits_with_1() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(SystemExit, match="cannot serve: "),
    ):
        main(["--port", str(taken.getsockname()[1]), "--duration", "0"])
