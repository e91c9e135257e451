"""What the environment and tools.yaml say: where things lie, which tools there are, who tells the weather."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from home_tools.problems import Problem

TOOLS_FILE = Path(__file__).with_name("tools.yaml")
_KEYS = {"tools", "folders", "zone"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the server."""

    state: Path
    """Folder that outlives a restart (`state: true` in agents.yaml)."""
    tools: Mapping[str, str]
    """Tool -> what it is for, as the model reads it."""
    folders: tuple[str, ...]
    """Folders below the state in which notes may lie; no tool reads or writes elsewhere."""
    zone: str = "UTC"
    """Time zone where none is named."""
    weather_url: str = ""
    """Base URL of Open-Meteo's forecasts. Empty: weather that is made up, without a network."""
    geocoding_url: str = ""
    """Base URL of Open-Meteo's search for places."""
    webhook: str = ""
    """URL that is sent a POST for each timer that fires. Empty: nobody."""
    webhook_token: str = field(default="", repr=False)
    """Bearer token of these."""

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ, file: Path = TOOLS_FILE) -> Settings:
        """Read them.

        Raises:
            Problem: tools.yaml is no such file.
        """
        document = _document(file)
        return cls(
            state=Path(environ.get("PALLAS_STATE") or ".pallas/services/home-tools"),
            tools=document["tools"],
            folders=tuple(document["folders"]),
            zone=environ.get("HOME_ZONE") or document.get("zone", "UTC"),
            weather_url=environ.get("WEATHER_URL", "").rstrip("/"),
            geocoding_url=environ.get("GEOCODING_URL", "").rstrip("/"),
            webhook=environ.get("TIMER_WEBHOOK", ""),
            webhook_token=environ.get("TIMER_WEBHOOK_TOKEN", ""),
        )


def _document(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise Problem(f"{file.name} cannot be read: {error}") from None
    if not isinstance(document, dict) or not {"tools", "folders"} <= set(document) <= _KEYS:
        raise Problem(f"{file.name}: has `tools`, `folders` and, where it is not UTC, `zone`")
    tools, folders = document["tools"], document["folders"]
    if not isinstance(tools, dict) or not all(isinstance(text, str) for pair in tools.items() for text in pair):
        raise Problem(f"{file.name}: tools: each tool has one text, what it is for")
    if not isinstance(folders, list) or not all(isinstance(folder, str) for folder in folders):
        raise Problem(f"{file.name}: folders: is a list of paths")
    return document
