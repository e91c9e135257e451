"""The files of static tokens, as agents and the gateway read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.fleet import source
from pallas_contract.launch import secret_files
from pallas_contract.problems import Refused
from pallas_contract.validate import load
from pallas_service.access import token_files

UI, OPS = "ui-0123456789abcdef", "ops-0123456789abcdef"
FLEET = "{name: x, access: {tokens: {ui: {file: t/ui}, ops: {file: t/ops}}}, agents: {a: {module: m.a, port: 8101}}}"


def read(project: Path, secrets: Path) -> dict[str, str]:
    tree = source.parse(FLEET, name="agents.yaml")
    return token_files.read(
        ["ui", "ops"], secret_files.of_agent(load.parse(tree), "a"), tree, project=project, secrets=secrets
    )


def test_tokens_come_from_the_files_named_or_from_what_is_mounted(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t/ui").write_text(f"{UI}\n")
    (tmp_path / "access.ops").write_text(OPS)
    assert read(tmp_path, tmp_path) == {"ui": UI, "ops": OPS}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "does not exist"),
        ("abc-123", "is too short to be a secret"),
        ("two words of a secret", "is not a token"),
        ("", "is not a token"),
        (UI, "is also the token of another caller"),
    ],
)
def test_what_cannot_be_a_token_is_refused_without_being_shown(tmp_path: Path, content: str | None, said: str) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t/ui").write_text(UI)
    if content is not None:
        (tmp_path / "t/ops").write_text(content)
    with pytest.raises(Refused) as refused:
        read(tmp_path, tmp_path)
    (problem,) = refused.value.problems
    assert problem.message.startswith(f"t/ops {said}")
    assert problem.where.field == "access.tokens.ops.file"
    assert not content or content not in str(problem)
