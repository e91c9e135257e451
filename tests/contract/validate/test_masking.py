"""What people are shown of command lines and of other programs' output."""

from __future__ import annotations

import pytest

from pallas_contract.validate import masking

KEY = "sk-proj-a1B2c3D4e5F6g7H8i9"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["python", "notes.py"], "python notes.py"),
        (["python", "my notes.py"], "python 'my notes.py'"),
        (["uvx", "x", "--api-key", "hunter2hunter2"], "uvx x --api-key ***"),
        (["uvx", "x", "--token=hunter2hunter2"], "uvx x --token=***"),
        (["uvx", "x", "--token=${TOKEN}"], "uvx x --token=${TOKEN}"),
        (["npx", "x", "-H", "Authorization: Bearer hunter2hunter2"], "npx x -H 'Authorization: ***'"),
        (["npx", "x", "postgres://me:hunter2@db/x"], "npx x ***"),
        (["npx", KEY], "npx ***"),
        (["x" * 200], f"{'x' * 157}..."),
    ],
)
def test_a_command_line_has_no_secret(words: list[str], shown: str) -> None:
    assert masking.command_line(words) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("No module named 'notes'", "No module named 'notes'"),
        ("cannot log in with hunter2hunter2 at db", "cannot log in with *** at db"),
        (f"key {KEY} refused, {KEY} again", "key *** refused, *** again"),
        ("GET https://me:pass@db.example/x", "GET https://***@db.example/x"),
        ("cannot reach postgres://me:p@ss-w0rd@db/x now", "cannot reach postgres://***@db/x now"),
        ("cannot reach 'redis://me:pa/ss@db' now", "cannot reach 'redis://***@db' now"),
        ("from http://a.example/x to me@b.example", "from http://a.example/x to me@b.example"),
        ("sent Authorization: Bearer a1b2c3d4e5", "sent Authorization: *** ***"),
        ("API_KEY=a1b2c3 is wrong", "API_KEY=*** is wrong"),
        ('{"password": "a1b2c3", "user": "me"}', '{"password": "***", "user": "me"}'),
        ("token: ${TOKEN} is not set", "token: ${TOKEN} is not set"),
    ],
)
def test_a_line_of_output_has_no_secret(text: str, shown: str) -> None:
    assert masking.masked(text, ["hunter2hunter2", "is", ""]) == shown
