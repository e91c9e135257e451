"""Keys of JSON objects as a reader may take them: some heed neither case nor a NUL at the end, and the last one counts.

Go's `encoding/json` does the first, with two letters beyond ASCII (GHSA-wvj2-96wp-fq3f), and its MCP SDK has done the
second (GHSA-q382-vc8q-7jhj).
"""

from __future__ import annotations


def folded(key: str) -> str:
    """Return what is the same for all keys that a reader may take for each other."""
    # in upper case first: two letters that are no ASCII have one there (U+0131, U+017F)
    return key.rstrip("\0").upper().casefold()
