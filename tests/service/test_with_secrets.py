"""A service of the project in a container: its secret files are the variables that it has as a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pallas_service.with_secrets import main

MODULE = """\
import os
import sys

if __name__ == "__main__":
    sys.exit([os.environ.get(name) for name in ("MAIL_PASSWORD", "KNOWN", "access")] + sys.argv[1:])
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of a project."""
    (tmp_path / "told_by_secrets.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", [])
    return "told_by_secrets"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """The folder of a container's secret files."""
    (folder := tmp_path / "secrets").mkdir()
    return folder


def test_secret_files_are_variables_and_one_that_is_set_stays(
    module: str, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (secrets / "MAIL_PASSWORD").write_text("sesame\r\n")
    (secrets / "KNOWN").write_text("other")
    (secrets / "access.token").write_text("no variable")
    monkeypatch.setenv("MAIL_PASSWORD", "")
    monkeypatch.delenv("MAIL_PASSWORD")
    monkeypatch.setenv("KNOWN", "before")
    with pytest.raises(SystemExit) as end:
        main([module, "--verbose"], os.environ, secrets)
    assert end.value.code == ["sesame", "before", None, "--verbose"]


def test_without_secrets_it_runs_too(module: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        main([module], {}, tmp_path / "nowhere")
    assert end.value.code == [None, None, None]


@pytest.mark.parametrize(("content", "reason"), [(b"\xff", "is not UTF-8 text (byte 0)"), (b"a\0", "has a NUL in it")])
def test_one_that_cannot_be_read_is_named_and_nothing_runs(
    module: str, secrets: Path, content: bytes, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (secrets / "MAIL_PASSWORD").write_bytes(content)
    assert main([module], {}, secrets) == 2
    assert f"{secrets / 'MAIL_PASSWORD'}: {reason}" in capsys.readouterr().err


def test_one_that_is_too_large_is_named_and_not_read(
    module: str, secrets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (secrets / "MAIL_PASSWORD").touch()
    os.truncate(secrets / "MAIL_PASSWORD", 1 << 30)
    assert main([module], {}, secrets) == 2
    assert "larger than 1 MiB" in capsys.readouterr().err
