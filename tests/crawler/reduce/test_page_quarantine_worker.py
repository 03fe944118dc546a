"""The process in which pages are parsed cannot outlive its use."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.parser_worker import FRAME

COMMAND = [sys.executable, "-m", "freshet.crawler.reduce.parser_worker"]
MEMORY = str(1 << 30)
Worker = subprocess.Popen[bytes]


@pytest.fixture
def worker() -> Iterator[Worker]:
    command = [*COMMAND, MEMORY, str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert received(process) == b""
        yield process
        process.kill()


def received(process: Worker) -> bytes:
    assert process.stdout is not None
    (length,) = FRAME.unpack(process.stdout.read(FRAME.size))
    return process.stdout.read(length)


def call(process: Worker, function: Callable[..., object], *arguments: object) -> None:
    assert process.stdin is not None
    process.stdin.write(pickle.dumps((0.5, partial(function, *arguments))))
    process.stdin.flush()


def test_calls_are_answered_in_order_with_the_memory_held(worker: Worker) -> None:
    call(worker, len, "four")
    call(worker, divmod, 7, 2)
    assert json.loads(received(worker))[:2] == [4, None]
    result, problem, is_lack, held_bytes = json.loads(received(worker))
    assert (result, problem, is_lack) == ([3, 1], None, False)
    assert (held_bytes > 1 << 20) == (sys.platform == "linux")


def test_what_a_call_raises_is_said_but_what_a_library_prints_is_not(worker: Worker) -> None:
    call(worker, print, "noise")
    assert json.loads(received(worker))[:2] == [None, None]
    call(worker, divmod, 1, 0)
    error = "ZeroDivisionError: integer division or modulo by zero"
    assert json.loads(received(worker))[:3] == [None, error, False]
    # Memory is limited.
    call(worker, bytes, 1 << 31)
    _, problem, is_lack, _ = json.loads(received(worker))
    assert ("MemoryError" in problem, is_lack) == (True, True)


def test_a_call_that_computes_for_too_long_is_ended_by_the_kernel(worker: Worker) -> None:
    # One call into C that looks for no signal on its way.
    call(worker, pow, 3, 10**8)
    assert worker.wait() == -signal.SIGPROF


def test_a_call_that_waits_uses_none_of_its_time(worker: Worker) -> None:
    call(worker, time.sleep, 0.8)
    assert json.loads(received(worker))[:2] == [None, None]


def test_pages_are_parsed_without_numpy() -> None:
    code = "import sys, freshet.crawler.reduce.parser_worker; print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_an_interrupt_of_the_whole_group_leaves_it_to_the_parent(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGINT)
    os.kill(worker.pid, signal.SIGTERM)
    call(worker, len, "four")
    assert json.loads(received(worker))[0] == 4


def test_the_end_of_the_input_is_its_end(worker: Worker) -> None:
    assert worker.stdin is not None
    worker.stdin.close()
    assert worker.wait() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
def test_it_dies_with_its_parent_even_in_the_middle_of_a_call() -> None:
    # A parent in between starts the worker, gives it an endless call and is killed.
    parent = f"""
import os, pickle, signal, subprocess, sys
command = {COMMAND!r} + [{MEMORY!r}, str(os.getpid())]
process = subprocess.Popen(command, stdin=subprocess.PIPE)
process.stdin.write(pickle.dumps((60.0, signal.pause)))
process.stdin.flush()
sys.stderr.close()
os.kill(os.getpid(), signal.SIGKILL)
"""
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        # The pipe ends when the last process that holds it has ended.
        process.stdout.read()


def test_a_page_is_read_as_by_parse_unless_it_is_hopelessly_deep() -> None:
    body = b"<title>T</title><a href=x>x</a>"
    page = parse(body, "https://h.example/", None, deepest=1)
    assert page == parse(body, "https://h.example/", None)
    with pytest.raises(RecursionError, match="nested 20,001 deep"):
        parse(b"<div>" * 20_001, "https://h.example/", "text/html", deepest=20_000)
