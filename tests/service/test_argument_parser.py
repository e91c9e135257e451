"""A mistyped verb or option is answered with the nearest there is."""

from __future__ import annotations

import pytest

from pallas_service.argument_parser import ArgumentParser


@pytest.fixture
def parser() -> ArgumentParser:
    parser = ArgumentParser(prog="tool")
    parser.add_argument("--check", action="store_true")
    verbs = parser.add_subparsers(dest="verb")
    status = verbs.add_parser("status")
    status.add_argument("--watch", action="store_true")
    status.add_argument("--form", choices=["text", "json"])
    add = verbs.add_parser("add").add_subparsers(dest="kind")
    add.add_parser("agent").add_argument("--card", action="store_true")
    return parser


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["statsu"], "tool: error: argument verb: there is no `statsu`: did you mean `status`?"),
        (["add", "agnet"], "tool add: error: argument kind: there is no `agnet`: did you mean `agent`?"),
        (["--chek"], "tool: error: unrecognized arguments: --chek: did you mean `--check`?"),
        (["status", "--wacth"], "tool status: error: unrecognized arguments: --wacth: did you mean `--watch`?"),
        (["status", "--wacth=1"], "tool status: error: unrecognized arguments: --wacth=1: did you mean `--watch`?"),
        (["status", "--form", "jsn"], "tool status: error: argument --form: there is no `jsn`: did you mean `json`?"),
        (["add", "agent", "--crad"], "tool add agent: error: unrecognized arguments: --crad: did you mean `--card`?"),
        (["xyz"], "tool: error: argument verb: there is no `xyz`: choose from status, add"),
        (["status", "--zzz", "more"], "tool status: error: unrecognized arguments: --zzz more"),
        (["status", "more"], "tool status: error: unrecognized arguments: more"),
    ],
)
def test_the_nearest_is_named(
    words: list[str], line: str, parser: ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == line


def test_what_is_right_is_parsed(parser: ArgumentParser) -> None:
    options = parser.parse_args(["--check", "add", "agent", "--card"])
    assert (options.check, options.verb, options.kind, options.card) == (True, "add", "agent", True)
