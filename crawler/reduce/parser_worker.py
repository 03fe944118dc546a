"""The process that parses hostile bodies, started by ``parser_process``.

Reads calls from standard input and writes answers to standard output. A call is its limit of
processor time and a function of this project without arguments, pickled; an answer is a frame of
its length (8 bytes, big-endian) and JSON, ``[result, problem, whether that is a lack of memory,
memory held in bytes]``, of which the parent trusts the types alone: a hostile body
may have taken over this process.

The limit of its memory counts from its size with its modules, which differs between machines and is
not a page's. It ends at the end of its input, when its parent dies, with ``OUT_OF_MEMORY`` if it
has no memory for an answer, and by SIGPROF, which also interrupts compiled code, and does not count
time in which the process waited.
"""

import contextlib
import ctypes
import gc
import json
import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from struct import Struct
from typing import IO, Any, Final

#: The length that precedes every answer.
FRAME: Final = Struct(">Q")
#: Its exit status without memory to read a call or to report that: ENOMEM.
OUT_OF_MEMORY: Final = 12
_PR_SET_PDEATHSIG: Final = 1
#: Fields of ``/proc/self/statm``.
_SIZE, _RESIDENT = 0, 1


def main(memory_limit_bytes: int, parent: int, modules: Sequence[str]) -> None:
    """Answer calls until the input ends; they are of functions of these modules, or need few."""
    for name in modules:
        import_module(name)
    _confine(memory_limit_bytes, parent)
    # What is imported stays, and a page makes hardly any cycles.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    calls = sys.stdin.buffer
    # Output that a library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    send(answers, b"")
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            # Read from the stream, so that no second copy of the body takes memory.
            send(answers, _answer(*pickle.load(calls)))  # noqa: S301  # from our own parent


def _confine(memory_limit_bytes: int, parent: int) -> None:
    # The interrupt of a terminal and a service's stop reach the whole group; this process
    # continues while its parent drains.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform == "linux":
        limit_bytes = _memory_bytes(_SIZE) + memory_limit_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the parent died first")


def _answer(time_limit_s: float, function: Callable[[], object]) -> bytes:
    signal.setitimer(signal.ITIMER_PROF, time_limit_s)
    try:
        # An answer may also be too large for the remaining memory.
        return _as_json(function())
    except Exception as error:  # noqa: BLE001  # any error of a hostile body is reported
        problem = f"{type(error).__name__}: {error}"[:200]
        # Lexbor gives up where it gets no memory.
        is_lack = isinstance(error, MemoryError) or type(error).__name__ == "SelectolaxError"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return _as_json(None, problem, is_lack=is_lack)


def _as_json(result: object, problem: str | None = None, *, is_lack: bool = False) -> bytes:
    told = result, problem, is_lack, _memory_bytes(_RESIDENT)
    words = json.dumps(told, default=_fields_of, ensure_ascii=False)
    return words.encode("utf-8", "surrogatepass")


def _fields_of(record: Any) -> dict[str, object]:
    # Not asdict(), which copies each text of a large page's columns.
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _memory_bytes(field: int) -> int:
    if sys.platform != "linux":
        return 0
    # Not ru_maxrss, which a process inherits from the one that started it.
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[field]
    return int(pages) * resource.getpagesize()


def send(stream: IO[bytes], message: bytes) -> None:
    """Write one frame."""
    stream.write(FRAME.pack(len(message)))
    stream.write(message)
    stream.flush()


if __name__ == "__main__":
    try:
        with contextlib.suppress(BrokenPipeError):
            main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    except MemoryError:
        # Not sys.exit(), which may want memory.
        os._exit(OUT_OF_MEMORY)
