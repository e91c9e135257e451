"""The number of connections that this process may have open: it bounds how many probes go on at once."""

from __future__ import annotations

from pallas_service.http.connections import raise_file_limit


def affordable(most: int) -> int:
    """Return half of the file descriptors that this process may have, at least 1 and at most `most`."""
    files = raise_file_limit()
    return most if files is None else max(1, min(most, files // 2))
