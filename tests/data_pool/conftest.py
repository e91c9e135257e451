"""The orchestrators of examples/03-data-pool, and what registers itself there."""

from __future__ import annotations

from tests.example_folder import make_importable

make_importable("03-data-pool", "hosts", "elsewhere")
