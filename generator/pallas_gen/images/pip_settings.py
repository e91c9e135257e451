"""The settings by which pip on this machine reaches its index, for the pip inside a build."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy")
_LINE = re.compile(r"(:env:|[a-z]+)\.([a-z-]+)=('.*'|\".*\")")
CERTIFICATES = "/run/secrets/certificates"


def parse(listing: str) -> dict[str, str]:
    """Return settings from the output of `pip config list`; variables are stronger than files."""
    matches = list(filter(None, map(_LINE.fullmatch, listing.splitlines())))
    matches.sort(key=lambda match: match[1] == ":env:")
    return {match[2]: " ".join(str(ast.literal_eval(match[3])).split()) for match in matches}


def pip_conf(settings: Mapping[str, str], *, certificates: bool) -> str:
    """Return a pip.conf with those of `settings` that say where packages come from."""
    lines = [f"{key} = {settings[key]}" for key in _KEYS if settings.get(key)]
    return "\n".join(["[global]", *lines, *([f"cert = {CERTIFICATES}"] if certificates else [])]) + "\n"


def certificates(settings: Mapping[str, str], env: Mapping[str, str]) -> str:
    """Return the path of the bundle of certificates that this machine trusts, empty for the usual one."""
    candidates = (settings.get("cert", ""), env.get("REQUESTS_CA_BUNDLE", ""), env.get("SSL_CERT_FILE", ""))
    return next((path for path in candidates if path and Path(path).is_file()), "")


def read(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return pip's settings on this machine; where there is no pip, those of uv's variable for the index."""
    for command in _pips():
        try:
            done = subprocess.run(  # noqa: S603
                [*command, "config", "list"], capture_output=True, text=True, check=False, timeout=60
            )
        except OSError:
            continue
        if done.returncode == 0:
            return parse(done.stdout)
    index = env.get("UV_DEFAULT_INDEX") or env.get("UV_INDEX_URL")
    return {"index-url": index} if index else {}


def _pips() -> Iterator[list[str]]:
    yield [sys.executable, "-m", "pip"]
    yield ["pip3"]
    yield ["python3", "-m", "pip"]
