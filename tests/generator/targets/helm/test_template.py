"""What helm prints is for Kubernetes: where it cannot be read here, that is said, with the template that it is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_gen.targets.helm import template
from pallas_gen.targets.observed import Unreadable

FIRST = b"---\n# Source: pallas/templates/first.yaml\nkind: First\n"
SECOND = b"---\n# Source: pallas/templates/second.yaml\nkind: Second\n"


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Read what a helm that prints this, and ends so, is read as."""

    def read(output: bytes, code: int = 0) -> list[dict[str, object]]:
        (tmp_path / "output").write_bytes(output)
        (tmp_path / "helm").write_text(f"#!/bin/sh\n/bin/cat output >&{1 if code == 0 else 2}\nexit {code}\n")
        (tmp_path / "helm").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return template.render(tmp_path, ())

    return read


def test_every_object_is_read(printed) -> None:
    assert printed(FIRST + b"---\n# nothing\n" + SECOND) == [{"kind": "First"}, {"kind": "Second"}]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (b"matchType: =\n", "could not determine a constructor for the tag 'tag:yaml.org,2002:value'"),
        (b"a: !own b\n", "could not determine a constructor for the tag '!own'"),
        (b"a: b: c\n", "mapping values are not allowed in this context"),
    ],
)
def test_a_template_that_cannot_be_read_is_named(printed, more: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as raised:
        printed(FIRST + more + SECOND)
    assert str(raised.value) == f"helm renders pallas/templates/first.yaml to YAML that cannot be read back: {reason}"
    assert raised.value.hint == "readers of YAML differ: put quotes around texts such as a lone `=`"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (FIRST + b"day: 2024-13-45\n", "month must be in 1..12"),
        (b"---\n# Source: pallas/templates/\x1b[31m.yaml\nkind: X\n", "unacceptable character #x001b: "),
    ],
)
def test_where_the_template_is_not_known_the_chart_is_named(printed, output: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match="helm renders this chart to YAML that cannot be read back: ") as raised:
        printed(output)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_nested_as_deep_as_helm_allows_is_not_read(printed) -> None:
    with pytest.raises(Unreadable, match="cannot be read back: nested deeper than 1000"):
        printed(b"a: " + b"[" * 9000 + b"]" * 9000)


def test_what_helm_logs_is_not_why_it_refuses_a_chart(printed) -> None:
    with pytest.raises(Unreadable) as raised:
        printed(b'level=INFO msg="found symbolic link in path"\nError: too many\nUse --debug\n', code=1)
    assert str(raised.value) == "helm refuses this chart: Error: too many\nUse --debug"


def test_names_of_templates_are_any_bytes(printed) -> None:
    assert printed(b"---\n# Source: pallas/templates/\xff.yaml\nkind: X\n") == [{"kind": "X"}]
    with pytest.raises(Unreadable, match="helm refuses this chart: no \ufffd"):
        printed(b"no \xff\n", code=1)
