"""How a build on this machine reaches the indexes: options of `docker buildx build`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pallas_gen.images import docker, pip_settings


def options(folder: Path) -> tuple[str, ...]:
    """Return the options by which pip inside a build reaches its index as the one of this machine does.

    They are secrets of the build, written to `folder`: none of them is kept in an image.
    """
    settings = pip_settings.read()
    certificates = pip_settings.certificates(settings, os.environ)
    conf = folder / "pip.conf"
    conf.write_text(pip_settings.pip_conf(settings, certificates=bool(certificates)))
    result = ["--secret", f"id=pip,src={conf}"]
    if certificates:
        result += ["--secret", f"id=certificates,src={certificates}"]
    npmrc = Path(os.environ.get("NPM_CONFIG_USERCONFIG") or Path.home() / ".npmrc")
    if npmrc.is_file():
        result += ["--secret", f"id=npm,src={npmrc}"]
    for variable in docker.PROXIES:
        if os.environ.get(variable):
            result += ["--build-arg", variable]
    # whole lines, for where the end of them is shown; --quiet would hide why a step fails
    return (*result, *([] if sys.stdout.isatty() else ["--progress", "plain"]))
