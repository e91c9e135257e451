"""`pallas-testing`: its commands are told without a package of the extra, and a missing one is named in one line."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from pallas_testing import cli


@pytest.mark.parametrize("command", ["model", "conformance"])
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: pallas-testing {command} ")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"pallas-testing {metadata.version('pallas-kit')}\n"


@pytest.mark.parametrize(
    ("command", "package"), [(["model", "x.yaml"], "pydantic"), (["conformance", "http://127.0.0.1:9"], "httpx")]
)
def test_a_missing_package_is_named_in_one_line(command: list[str], package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None; import pallas_testing.cli as cli; sys.exit(cli.main({command}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("pallas-testing: needs the extra `testing` (not installed: ")
    assert done.stderr.count("\n") == 1


def test_it_imports_nothing_of_the_extra_before_it_knows_what_to_do() -> None:
    heavy = "{'asyncio', 'httpx', 'mcp', 'pydantic', 'prometheus_client', 'starlette', 'yaml'}"
    code = f"import sys, pallas_testing.cli as cli; cli.parser(); print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
