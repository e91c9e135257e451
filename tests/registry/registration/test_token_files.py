"""Tokens: read from files, never shown, compared without telling how far they agree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pallas_contract import limited_file
from pallas_contract.fleet.model import Registration
from pallas_contract.problems import Refused
from pallas_registry import fleet_file
from pallas_registry.fleet_file import FleetWatcher
from pallas_registry.registration import token_files
from tests.problem_lines import without_codes
from tests.registry.registration_client import TOKENS, admit, opened, register


def chosen(**files: str) -> Registration:
    return Registration.model_validate({"tokens": {name: {"file": file} for name, file in files.items()}})


def test_whose_token_it_is(folder: Path) -> None:
    admit(folder)
    known = fleet_file.load(folder / "agents.yaml").tokens
    assert [known.name_of(given) for given in (*TOKENS.values(), "", "x" * 16, "\ud800")] == [
        "pricing",
        "partners",
        None,
        None,
        None,
    ]
    assert not any(token in repr(known) for token in TOKENS.values())


def test_a_mounted_secret_goes_before_the_projects_file(folder: Path, tmp_path: Path) -> None:
    admit(folder)
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "registration-partners").write_text("mounted-token-0123456789\n")
    known = fleet_file.load(folder / "agents.yaml", secrets).tokens
    assert known.name_of("mounted-token-0123456789") == "partners"
    assert known.name_of(TOKENS["partners"]) is None


def test_files_that_hold_no_token_are_refused_all_at_once_and_not_shown(tmp_path: Path) -> None:
    canary = "canary"
    (tmp_path / "short").write_text(canary)
    (tmp_path / "spaces").write_text(f"{canary} " * 5)
    (tmp_path / "binary").write_bytes(b"\xff" * 40)
    (tmp_path / "twin").write_text("the-same-token-0123456789")
    (tmp_path / "same").write_text("the-same-token-0123456789\n")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 30)
    os.mkfifo(tmp_path / "pipe")
    wanted = chosen(a="short", b="spaces", c="binary", d="twin", e="same", f="missing", g="huge", h="pipe")
    with pytest.raises(Refused) as refused:
        token_files.read(wanted, token_files.paths(wanted, tmp_path, tmp_path / "no"), "agents.yaml")
    said = [without_codes(str(problem)).splitlines()[0] for problem in refused.value.problems]
    none = "holds no token: 16 or more characters in one line, without spaces"
    at = "agents.yaml registry.registration.tokens"
    assert said == [
        f"{at}.a.file: short {none}",
        f"{at}.b.file: spaces {none}",
        f"{at}.c.file: binary {none}",
        f"{at}.e.file: is the same token as another one's",
        f"{at}.f.file: missing cannot be read: no such file or directory",
        f"{at}.g.file: huge cannot be read: larger than 1 MiB",
        f"{at}.h.file: pipe cannot be read: not a regular file",
    ]
    assert canary not in str(refused.value)


def test_a_new_token_is_read_while_the_registry_runs_and_a_broken_one_changes_nothing(folder: Path) -> None:
    admit(folder)
    follower = FleetWatcher(folder / "agents.yaml")
    assert follower.first().tokens.name_of(TOKENS["partners"])
    assert (follower.poll(), follower.poll()) == (None, None)
    (folder / "partners.token").write_text("rotated-token-0123456789\n")
    assert follower.poll() is None  # it must stand still first
    assert follower.poll().tokens.name_of("rotated-token-0123456789") == "partners"
    assert follower.poll() is None
    (folder / "partners.token").write_text("")
    assert follower.poll() is None
    with pytest.raises(Refused):
        follower.poll()
    assert not follower.ok


class Unthought(Exception):
    """No part of the registry knows it."""


@pytest.mark.usefixtures("no_threads")
async def test_a_file_whose_reading_fails_leaves_the_earlier_tokens(
    folder: Path, time: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> str:
        raise Unthought(path)

    async def config_ok() -> str:
        metrics = (await desk.service.monitor.metrics.scrape(""))[0].decode()
        (line,) = (line for line in metrics.splitlines() if line.startswith("pallas_registry_config_ok "))
        return line

    admit(folder)
    rotated = "rotated-token-0123456789"
    async with opened(folder, time) as desk:
        with monkeypatch.context() as patch, capture_logs() as lines:
            patch.setattr(limited_file, "text", fail)
            (folder / "partners.token").write_text(rotated)
            await time.advance(6)
        (event,) = (line for line in lines if line["log_level"] == "error")
        assert "agents.yaml: cannot be checked: Unthought" in event["problems"][0]
        assert await config_ok() == "pallas_registry_config_ok 0.0"
        assert await desk.code(register()) == (200, 0)
        (folder / "partners.token").write_text(rotated + "\n")
        await time.advance(6)
        assert await config_ok() == "pallas_registry_config_ok 1.0"
        assert (await desk.code(register()))[0] == 401
