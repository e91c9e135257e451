"""Secret files, `.env` and the plan's variables fill the environment, in that order, and overwrite nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pallas_agent_runtime.config import environment
from pallas_contract import limited_file
from pallas_contract.fleet import source
from pallas_contract.problems import Refused
from pallas_contract.validate import load
from tests.problem_lines import without_codes

FLEET: dict[str, Any] = {
    "name": "demo",
    "agents": {"jarvis": {"module": "agents.jarvis", "port": 8201, "depends_on": ["model"]}},
    "services": {"model": {"module": "m", "port": 8300, "provides": "openai"}},
}


def fill(folder: Path, environ: dict[str, str], jarvis: dict[str, Any] | None = None) -> dict[str, str]:
    agents = {"jarvis": {**FLEET["agents"]["jarvis"], **(jarvis or {})}}
    tree = source.parse(str({**FLEET, "agents": agents}), name="agents.yaml")
    environment.fill(load.parse(tree), tree, "jarvis", project=folder, environ=environ, secrets=folder / "secrets")
    return environ


def test_every_source_is_read_and_none_overwrites(toolkit: Any, tmp_path: Path) -> None:
    files = {
        "secrets/SHARED": "from-file\n",
        "secrets/ONLY_FILE": "two\nlines\n",
        "secrets/not-a-key": "x",
        ".env": 'SHARED=from-dotenv\nONLY_DOTENV="quoted ${HOME}"\nEMPTY\nexport PALLAS_BIND=1.2.3.4:5\nTAKEN=dotenv\n',
    }
    toolkit.write_files(tmp_path, files)
    environ = fill(tmp_path, {"TAKEN": "already"})
    assert environ["SHARED"] == "from-file"
    assert environ["ONLY_FILE"] == "two\nlines"
    assert environ["ONLY_DOTENV"] == "quoted ${HOME}"
    assert environ["TAKEN"] == "already"
    assert environ["PALLAS_BIND"] == "127.0.0.1:8201"  # the plan's own variables are no defaults of the user's
    assert environ["OPENAI_BASE_URL"] == "http://127.0.0.1:8300/v1"
    assert "not-a-key" not in environ
    assert "EMPTY" not in environ


def test_a_file_in_the_secrets_folder_comes_before_the_projects(toolkit: Any, tmp_path: Path) -> None:
    toolkit.write_files(tmp_path, {"secrets/.env": "KEY=mounted\n", ".env": "KEY=project\n"})
    assert fill(tmp_path, {})["KEY"] == "mounted"


def test_a_masked_file_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to("/dev/null")
    assert environment.choose(".env", tmp_path, tmp_path / "secrets") is None
    assert environment.dotenv(tmp_path, tmp_path / "secrets") == {}


def test_secrets_named_in_the_fleet_file_are_read_outside_a_container_too(toolkit: Any, tmp_path: Path) -> None:
    toolkit.write_files(tmp_path, {"keys/token": "t0k\n"})
    jarvis = {"secrets": {"TOKEN": {"file": "keys/token"}}}
    assert fill(tmp_path, {}, jarvis)["TOKEN"] == "t0k"
    assert fill(tmp_path, {"TOKEN": "set"}, jarvis)["TOKEN"] == "set"


@pytest.mark.parametrize("files", [{}, {"keys/token": "other\n"}], ids=["absent", "different"])
def test_a_secret_that_is_set_or_mounted_needs_no_file_of_the_project(
    toolkit: Any, tmp_path: Path, files: dict[str, str]
) -> None:
    toolkit.write_files(tmp_path, {**files, "secrets/MOUNTED": "mounted\n"})
    jarvis = {"secrets": {key: {"file": "keys/token"} for key in ("SET", "MOUNTED")}}
    environ = fill(tmp_path, {"SET": "set"}, jarvis)
    assert (environ["SET"], environ["MOUNTED"]) == ("set", "mounted")


def test_a_missing_secret_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        fill(tmp_path, {}, {"secrets": {"TOKEN": {"file": "keys/token"}}})
    assert without_codes(str(refused.value)).endswith(
        "agents.jarvis.secrets.TOKEN: there is no file keys/token\n    create it, or set the environment variable TOKEN"
    )


@pytest.mark.parametrize("name", ["secrets/KEY", ".env"])
def test_a_file_with_a_nul_is_named_and_what_is_in_it_is_not(toolkit: Any, tmp_path: Path, name: str) -> None:
    toolkit.write_files(tmp_path, {name: "KEY=canary\0\n"})
    with pytest.raises(Refused) as refused:
        fill(tmp_path, {})
    assert without_codes(str(refused.value)) == f"{tmp_path / name}: has a NUL in it (byte 10)\n    save it as UTF-8"


def test_an_unreadable_secret_file_is_named_with_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "KEY"
    path.write_text("x")

    def denied(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(limited_file, "text", denied)
    with pytest.raises(Refused) as refused:
        environment.secret_files(tmp_path)
    assert f"{path}: cannot be read by uid {os.getuid()}: permission denied" in str(refused.value)


def test_a_file_that_is_too_large_for_a_secret_is_named(tmp_path: Path) -> None:
    path = tmp_path / "KEY"
    path.touch()
    os.truncate(path, 1 << 30)
    with pytest.raises(Refused) as refused:
        environment.secret_files(tmp_path)
    assert without_codes(str(refused.value)) == (
        f"{path}: cannot be read by uid {os.getuid()}: larger than 1 MiB\n    it is no secret: name another file"
    )
