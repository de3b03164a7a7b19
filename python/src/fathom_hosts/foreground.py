"""Whether a terminal sends its Ctrl-C to this process."""

from __future__ import annotations

import os


def is_foreground() -> bool:
    """Whether this process group is the foreground group of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False  # No terminal controls this process.
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
