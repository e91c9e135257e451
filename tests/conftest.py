"""Options and fixtures of all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the expected files instead of comparing with them")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def expected(request: pytest.FixtureRequest):
    """Compare a text with a committed file, or rewrite that file under `--rewrite`."""
    rewrite = request.config.getoption("--rewrite")

    def check(path: Path, text: str) -> None:
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        assert path.is_file(), f"{path.relative_to(ROOT)} is missing: run `make golden`"
        assert text == path.read_text("utf-8")

    return check
