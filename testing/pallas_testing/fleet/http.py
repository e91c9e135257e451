"""HTTP with the members of a fleet, which are on this machine: no proxy of the environment, and no TLS."""

from __future__ import annotations

import ssl

import httpx

TIMEOUT = 10.0
"""Seconds for one answer."""
TRUSTS_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""What a client may have where there is no TLS: else each one reads the certificates of all authorities anew, which
takes longer than a whole question."""


def get(url: str) -> httpx.Response:
    """Return the answer to `GET url`, whatever its status.

    Raises:
        httpx.HTTPError: there is none.
    """
    return httpx.get(url, timeout=TIMEOUT, trust_env=False, verify=TRUSTS_NOBODY)


def post(url: str, timeout: float) -> httpx.Response:
    """Return the answer to `POST url`, whatever its status.

    Raises:
        httpx.HTTPError: there is none within `timeout` seconds.
    """
    return httpx.post(url, timeout=timeout, trust_env=False, verify=TRUSTS_NOBODY)
