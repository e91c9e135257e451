"""A block of YAML -> a project that the kit reads: what it leaves out is added, what it names is put beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from pallas_gen.project import load

MODULE = """from fast_agent import FastAgent

fast = FastAgent("stand-in")


@fast.agent(name="{name}")
async def main() -> None: ...
"""
CARD = "---\ntype: agent\nname: {name}\nmodel: passthrough\n---\nYou are a stand-in.\n"
SERVICE = 'import os\n\nbind = os.environ["PALLAS_BIND"]\n'
CONFIG = "default_model: passthrough\nmcp:\n  servers:\n    argos: {url: https://argos.example.com/mcp}\n"
MISSING = {"name": "docs", "agents": {"hello": {"card": "agents/hello.md", "port": 8101}}}
"""Keys that a block about another one leaves out."""


def check(folder: Path, fleet: str, config: str = CONFIG) -> load.Loaded:
    """Read a fleet as `pallas-gen validate` does.

    Raises:
        pallas_contract.problems.Refused: with every error.
    """
    data = yaml.safe_load(fleet) or {}
    absent = {key: value for key, value in MISSING.items() if key not in data}
    _write(folder / "agents.yaml", f"{fleet}\n{yaml.safe_dump(absent) if absent else ''}")
    _write(folder / "fastagent.config.yaml", config)
    for name, entry in ({**absent, **data})["agents"].items():
        if "module" in entry:
            _write(folder / f"{entry['module'].replace('.', '/')}.py", MODULE.format(name=name))
        elif "card" in entry:
            _write(folder / entry["card"], CARD.format(name=name))
    for entry in data.get("services", {}).values():
        if "module" in entry:
            _write(folder / f"{entry['module'].replace('.', '/')}.py", SERVICE)
    for file in _files(data):
        _write(folder / file, json.dumps({"keys": []}) if file.endswith(".json") else "x" * 32)
    return load.load(folder / "agents.yaml", {})


def _files(node: Any) -> Iterator[str]:
    """Yield the secret files that a fleet names."""
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key in ("file", "jwks_file") and isinstance(value, str))
        for value in node.values():
            yield from _files(value)
    elif isinstance(node, list):
        for value in node:
            yield from _files(value)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
