"""The memory of examples/04-percolate, no package of the kit's."""

from __future__ import annotations

from tests.example_folder import make_importable

make_importable("04-percolate", "percolate")
