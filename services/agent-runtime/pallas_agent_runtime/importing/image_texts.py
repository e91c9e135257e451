"""`python -m pallas_agent_runtime.importing.image_texts`: compile and keep what agents have compiled as they import.

Part of the build of the agent's image, where nobody can write beside the bytecode afterwards (decision 0057).
"""

from __future__ import annotations

import importlib

from pallas_agent_runtime import unused_imports
from pallas_service import compiled_texts, deferred_models


def main() -> None:
    """Import all that agents do, with the client of each provider and what is imported late."""
    compiled_texts.begin(always=True)
    deferred_models.defer()
    unused_imports.defer()
    preloaded = importlib.import_module("pallas_agent_runtime.preloaded")
    for provider in ("anthropic", "google", "openai"):
        preloaded.engine.preload(provider)
    for distribution in unused_imports.ALL:
        for late in distribution.modules:
            dir(importlib.import_module(late.module))
    compiled_texts.end(always=True)


if __name__ == "__main__":
    main()
