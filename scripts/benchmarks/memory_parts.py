"""A command of Freshet that notes, in its own process, what its memory is of (Linux, glibc).

``python -m scripts.benchmarks.memory_parts FILE SECONDS daemon …`` runs ``freshet daemon …``; every
so many seconds a thread adds a line to the file.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
import threading
from ctypes.util import find_library
from pathlib import Path
from time import monotonic

from freshet.crawler.cli import run

_ARENA_BYTES = 1 << 20
_KIB = 1024
_LIBC = ctypes.CDLL(None)


class _Heap(ctypes.Structure):
    """The struct mallinfo2 of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
        .split()
    ]  # fmt: skip


def parts() -> dict[str, float]:
    """Return what the resident memory of this process is of, in bytes.

    ``free`` is of glibc's heap, ``holes`` of Python's own arenas. ``rest`` is what neither of them
    holds: stacks, the memory of libraries, pages of arenas that are not resident count against it.
    """
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    said = dict(line.split(":", 1) for line in lines)
    anonymous, files = (int(said[name].split()[0]) * _KIB for name in ("RssAnon", "RssFile"))
    heap, python = _heap(), _debug_of_python()
    arenas = _figure(python, "arenas allocated current") * _ARENA_BYTES
    used = _figure(python, "bytes in allocated blocks")
    return {
        "at": monotonic(),
        "resident": anonymous + files,
        "files": files,
        "sqlite": _sqlite(),
        "python": used,
        "holes": arenas - used,
        "blocks": sys.getallocatedblocks(),
        "heap": heap.uordblks + heap.hblkhd,
        "free": heap.fordblks,
        "rest": anonymous - arenas - heap.arena - heap.hblkhd,
    }


def _heap() -> _Heap:
    _LIBC.mallinfo2.restype = _Heap
    found: _Heap = _LIBC.mallinfo2()
    return found


def _sqlite() -> int:
    library = ctypes.CDLL(find_library("sqlite3"))
    library.sqlite3_memory_used.restype = ctypes.c_int64
    used: int = library.sqlite3_memory_used()
    return used


def _debug_of_python() -> str:
    """Return what ``sys._debugmallocstats`` prints."""
    text, size = ctypes.c_char_p(), ctypes.c_size_t()
    _LIBC.open_memstream.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(_LIBC.open_memstream(ctypes.byref(text), ctypes.byref(size)))
    ctypes.pythonapi._PyObject_DebugMallocStats(stream)
    _LIBC.fclose(stream)
    said = (text.value or b"").decode("ascii")
    _LIBC.free(text)
    return said


def _figure(said: str, name: str) -> int:
    found = re.search(rf"{name} +(?:= +|)([\d,]+)$", said, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"Python does not say its {name}")
    return int(found[1].replace(",", ""))


def _note(file: Path, seconds: float) -> None:
    while True:
        with file.open("a", encoding="ascii") as out:
            out.write(json.dumps(parts()) + "\n")
        threading.Event().wait(seconds)


def main() -> None:
    """Run the command."""
    file, seconds, *rest = sys.argv[1:]
    threading.Thread(target=_note, args=(Path(file), float(seconds)), daemon=True).start()
    sys.argv = ["freshet", *rest]
    run()


if __name__ == "__main__":
    main()
