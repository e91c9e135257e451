"""list_notes, read_note, write_note, append_note, delete_note: text files in the folders that tools.yaml names."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from home_tools.files.folder import Folder, split
from home_tools.home import Home
from home_tools.problems import Problem
from home_tools.tools import Tools

Path = Annotated[str, Field(min_length=1, max_length=400, description="Path, as work-agent-config/notes/week.md")]
FolderPath = Annotated[str, Field(min_length=1, max_length=400, description="Folder, as work-agent-config/notes/")]
Text = Annotated[str, Field(max_length=200_000)]


def tools(home: Home) -> Tools:
    """Return them."""

    def note(path: str) -> tuple[Folder, str]:
        folder, name = split(path, home.settings.folders, home.settings.state)
        if not name:
            raise Problem(f"`{path}` is a folder")
        return folder, name

    async def list_notes(path: FolderPath) -> str:
        folder, _ = split(f"{path.rstrip('/')}/", home.settings.folders, home.settings.state)
        return "\n".join(await asyncio.to_thread(folder.names)) or "There is no note."

    async def read_note(path: Path) -> str:
        folder, name = note(path)
        return await asyncio.to_thread(folder.read, name)

    async def write_note(path: Path, text: Text) -> str:
        folder, name = note(path)
        await asyncio.to_thread(folder.add, name, f"{text.rstrip()}\n")
        return f"{path} is written."

    async def append_note(path: Path, text: Text) -> str:
        folder, name = note(path)
        await asyncio.to_thread(folder.change, name, lambda before: f"{before.rstrip()}\n{text.rstrip()}\n")
        return f"{path} has it at its end."

    async def delete_note(path: Path) -> str:
        folder, name = note(path)
        await asyncio.to_thread(folder.remove, name)
        return f"{path} is deleted."

    return {
        "list_notes": list_notes,
        "read_note": read_note,
        "write_note": write_note,
        "append_note": append_note,
        "delete_note": delete_note,
    }
