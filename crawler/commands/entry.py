"""The entry point of the console command: thin, so that Ctrl-C is understood from the start.

Everything else is imported inside :func:`run`, which takes a second.
"""

from __future__ import annotations

import os
import sys


def run() -> None:
    """Run the command; an interruption and a reader that has gone are no tracebacks."""
    try:
        # Nothing here multiplies matrices: numpy need not start a thread for each core.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from crawler.commands.verbs import application  # noqa: PLC0415 - see above

        application(sys.argv[1:])()
    except KeyboardInterrupt:
        sys.stderr.write("freshet: interrupted\n")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
