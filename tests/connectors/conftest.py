"""The connectors of examples/05-atlas, no packages of the kit's."""

from __future__ import annotations

from tests.example_folder import make_importable

make_importable("05-atlas", "connectors")
