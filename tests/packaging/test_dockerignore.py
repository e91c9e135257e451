"""What `docker build` of a checkout is sent: what the two Dockerfiles copy, and nothing else."""

from __future__ import annotations

import re

from tests.installed import ROOT


def _copied(dockerfile: str) -> set[str]:
    """Return the paths of the checkout that a Dockerfile copies."""
    lines = (ROOT / dockerfile).read_text().splitlines()
    sources = [line.split()[1:-1] for line in lines if re.match(r"COPY\s+(?!--from)", line)]
    return {path.rstrip("/") for paths in sources for path in paths}


def test_the_context_is_what_the_images_are_made_of() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    allowed = {line[1:] for line in lines if line.startswith("!")}
    assert allowed == _copied("Dockerfile.agent") | _copied("Dockerfile.registry")
    assert [path for path in sorted(allowed) if not (ROOT / path).exists()] == []
