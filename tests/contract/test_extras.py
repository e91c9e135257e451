"""The extras of a distribution: what of them is not installed, and how a command says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract import extras

METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: 1.0
Requires-Dist: pydantic>=2
Requires-Dist: structlog>=25; extra == 'registry'
Requires-Dist: no-such-thing[extra]>=1; extra == 'registry'
Requires-Dist: neither-this<2,>=1 ; python_version > "3" and extra == "agent"
Requires-Dist: pallas-kit[agent,registry]; extra == 'local'
"""


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "probe_kit-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA.format(name="probe-kit"))
    monkeypatch.syspath_prepend(tmp_path)
    return "probe-kit"


@pytest.mark.parametrize(
    ("asked", "absent"),
    [
        (("registry",), ["no-such-thing"]),
        (("agent", "registry"), ["neither-this", "no-such-thing"]),
        (("local",), []),
        (("testing",), []),
    ],
)
def test_packages_of_the_extras_that_are_not_installed(
    asked: tuple[str, ...], absent: list[str], distribution: str
) -> None:
    assert extras.missing(*asked, distribution=distribution) == absent


def test_code_without_its_distribution_lacks_nothing_that_could_be_named() -> None:
    assert extras.missing("agent", distribution="pallas-kit-that-nobody-installed") == []


def test_the_extras_of_the_kit_itself_are_here() -> None:
    assert extras.missing("agent", "registry", "testing") == []


def test_the_advice_is_one_line() -> None:
    expected = "pallas: needs the extra `local` (not installed: a, b): pip install 'pallas-kit[local]'\n"
    assert extras.advice("pallas", "local", ["a", "b"]) == expected
