"""What each example's README has for who copies it: a picture, a short start, what it costs, what breaks, and tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pallas_contract.problems import Refused
from pallas_gen.project import load

from .blocks import BLOCKS, ROOT, Block

EXAMPLES = sorted(path.parent for path in ROOT.glob("examples/*/agents.yaml"))


def blocks_of(example: Path) -> list[Block]:
    return [block for block in BLOCKS if block.page == f"examples/{example.name}/README.md"]


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.name)
def example(request: pytest.FixtureRequest) -> Path:
    """The folder of an example."""
    path: Path = request.param
    return path


def test_it_begins_with_a_picture_and_a_start_of_few_words(example: Path) -> None:
    picture, start = [block for block in blocks_of(example) if block.scenario in ("drawing", "commands")][:2]
    assert (picture.scenario, start.scenario) == ("drawing", "commands")
    commands = [line.partition("#")[0].strip() for line in start.text.splitlines()]
    first = [part.strip() for line in commands for part in line.split("&&") if part.strip()]
    until = next(place for place, command in enumerate(first) if command == "pallas")
    assert until <= 2, "a change of folder, perhaps its packages or `make demo`, and the start"


def test_it_says_how_long_it_takes_and_how_much_memory(example: Path) -> None:
    text = " ".join((example / "README.md").read_text().split())
    assert re.search(r"\bup (in|after) \d+ s\b", text, re.IGNORECASE)
    assert re.search(r"\b\d+ MiB together\b", text)


def test_it_breaks_something_and_says_what_is_seen(example: Path) -> None:
    text = (example / "README.md").read_text()
    assert re.search(r"^#+ .*break|\*\*What breaks", text, re.MULTILINE | re.IGNORECASE)
    assert re.search(r"^\| what (is wrong|happens) \| what ", text, re.MULTILINE)


def test_its_tests_are_to_be_copied_and_say_so(example: Path) -> None:
    text = " ".join((example / "README.md").read_text().split())
    assert "`tests/` is a folder to copy" in text
    assert re.search(r"(as|on) processes, in containers and on a cluster", text)
    assert list((example / "tests").glob("test_*.py"))


def test_what_the_first_example_says_of_a_typing_error_is_so(tmp_path: Path) -> None:
    written = (ROOT / "examples" / "01-hello" / "agents.yaml").read_text()
    (tmp_path / "agents.yaml").write_text(written.replace("    port: ", "    prot: "))
    with pytest.raises(Refused) as refused:
        load.load(tmp_path / "agents.yaml", {})
    (problem,) = refused.value.problems
    assert "agents.yaml:8:5 agents.hello.prot: unknown key" in str(problem)
    assert "did you mean `port`?" in str(problem)
