"""The number of connections that this process may have open: it bounds how many probes go on at once."""

from __future__ import annotations

import contextlib
import resource


def affordable(most: int) -> int:
    """Return half of the file descriptors that this process may have, at least 1 and at most `most`.

    The soft limit is raised to the hard one first: it is there for programs that use `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS refuses what it calls unlimited
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft // 2))
