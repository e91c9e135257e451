"""Notes within the folders that are named, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

WORK = "work-agent-config/notes/"


async def test_a_note_is_written_read_added_to_listed_and_deleted(call, tmp_path: Path) -> None:
    path = f"{WORK}plan.md"
    assert (await call("write_note", path=path, text="Ship.")).content[0].text == f"{path} is written."
    again = await call("write_note", path=path, text="Other.")
    assert (again.is_error, "there is a plan.md already" in again.content[0].text) == (True, True)
    await call("append_note", path=path, text="On Friday.")
    assert (await call("read_note", path=path)).content[0].text == "Ship.\nOn Friday.\n"
    assert (tmp_path / path).read_text() == "Ship.\nOn Friday.\n"
    assert (await call("list_notes", path=WORK)).content[0].text == "plan.md"
    assert (await call("delete_note", path=path)).content[0].text == f"{path} is deleted."
    assert (await call("list_notes", path=WORK.rstrip("/"))).content[0].text == "There is no note."
    assert "there is no plan.md" in (await call("read_note", path=path)).content[0].text
    inner = "family-agent-config/tasks/home/notes/door.md"
    assert (await call("write_note", path=inner, text="Key.")).is_error is False


@pytest.mark.parametrize(
    "path",
    [
        "secret.md",
        "/etc/passwd",
        "../secret.md",
        "work-agent-config/secret.md",
        "work-agent-config/notes/../../secret.md",
        "work-agent-config/notes/../secret.md",
        "work-agent-config/notesmore/secret.md",
        "work-agent-config/notes/.lock",
        "work-agent-config/notes/.hidden/x.md",
        "work-agent-config/notes/link.md",
        "work-agent-config/notes/folder/x.md",
        "work-agent-config/notes/",
        "work-agent-config/notes/nul\0.md",
        f"work-agent-config/notes/{'x' * 300}.md",
    ],
)
async def test_no_path_leads_elsewhere(call, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.md").write_text("secret")
    notes = tmp_path / WORK
    notes.mkdir(parents=True)
    (notes / "link.md").symlink_to(tmp_path / "secret.md")
    (notes / "folder").symlink_to(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for name, more in (("read_note", {}), ("write_note", {"text": "x"}), ("append_note", {"text": "x"})):
        answer = await call(name, path=path, **more)
        assert answer.is_error, name
        assert answer.content[0].text != "secret"
    assert (tmp_path / "secret.md").read_text() == "secret"
    assert [entry for entry in sorted(tmp_path.rglob("*")) if entry.name != ".lock"] == [
        entry for entry in before if entry.name != ".lock"
    ]
    if not path.endswith("link.md"):  # a link is a name in its own folder
        assert (await call("delete_note", path=path)).is_error


async def test_a_note_has_an_end(call) -> None:
    path = f"{WORK}long.md"
    await call("write_note", path=path, text="x" * 200_000)
    refused = await call("append_note", path=path, text="y" * 100_000)
    assert "long.md would have 292 KiB, and may have 256: split it" in refused.content[0].text
    assert (await call("read_note", path=path)).content[0].text == "x" * 200_000 + "\n"
