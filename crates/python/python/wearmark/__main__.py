"""The ``wearmark`` command of the package."""

from __future__ import annotations

import os
import sys

from ._native import command


def main() -> int:
    """Runs the command with the arguments of this process, and gives its exit code."""
    program = os.path.abspath(sys.argv[0])
    if os.access(program, os.X_OK):
        # Commands that start steps of their own start this program, not the interpreter.
        os.environ.setdefault("WEARMARK_PROGRAM", program)
    # Executors that are written in Python run on this one.
    os.environ.setdefault("WEARMARK_PYTHON", sys.executable)
    return command(["wearmark", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
