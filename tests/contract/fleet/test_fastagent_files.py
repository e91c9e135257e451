"""The names that fast-agent's files may have, and that of several none is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from fast_agent import home

from pallas_contract.fleet import fastagent, fastagent_files
from pallas_contract.problems import Refused
from tests.problem_lines import without_codes


def test_they_are_the_names_that_fast_agent_itself_looks_for() -> None:
    assert set(fastagent_files.CONFIG) == set(home.CONFIG_FILENAMES)
    assert set(fastagent_files.SECRETS) == set(home.SECRETS_FILENAMES)


@pytest.mark.parametrize("name", fastagent_files.CONFIG)
def test_a_configuration_is_read_under_any_of_them(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("default_model: openai.m\nmcp: {servers: {a: {url: 'http://a:0'}}}\n")
    config, (problem,) = fastagent.load(tmp_path)
    assert (config.default_model, config.file, problem.where.file) == ("openai.m", name, name)


@pytest.mark.parametrize("name", fastagent_files.SECRETS)
def test_so_are_secrets(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("openai: {api_key: '${KEY}'}\n")
    config, _ = fastagent.load(tmp_path)
    assert config.variables["KEY"].file == name


def test_two_names_at_once_are_refused_with_both(tmp_path: Path) -> None:
    for name in (*fastagent_files.CONFIG[:2], *fastagent_files.SECRETS):
        (tmp_path / name).touch()
    with pytest.raises(Refused) as refused:
        fastagent.load(tmp_path)
    assert sorted(without_codes(str(problem)).splitlines()[0] for problem in refused.value.problems) == [
        "fast-agent.secrets.yaml: is there, and so is fastagent.secrets.yaml: only one of them can hold",
        "fast-agent.yaml: is there, and so is fastagent.config.yaml: only one of them can hold",
    ]


def test_the_first_folder_with_secrets_is_the_one(tmp_path: Path) -> None:
    mounted = tmp_path / "secrets"
    mounted.mkdir()
    project = tmp_path / "fastagent.secrets.yaml"
    project.touch()
    assert fastagent_files.secrets(mounted, tmp_path) == project
    (mounted / "fast-agent.secrets.yaml").touch()
    assert fastagent_files.secrets(mounted, tmp_path) == mounted / "fast-agent.secrets.yaml"
