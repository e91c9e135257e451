"""The fixture `scripted_model`: a model for one test, which fails where something did not go by its script.

pytest imports this module in every project that loads it, so it imports nothing but pytest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pallas_testing.model import ScriptedModel

MARKER = "scripted_model(path): the script or cassette that the fixture follows, relative to the folder of the test"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def scripted_model(request: pytest.FixtureRequest) -> Iterator[ScriptedModel]:
    """Yield a model on a free port of this machine, following the file that the marker of the same name names."""
    from pallas_testing import model  # noqa: PLC0415 - only where a test wants one

    marker = request.node.get_closest_marker("scripted_model")
    path = Path(request.node.path).parent / marker.args[0] if marker else None
    try:
        scripted = model.ScriptedModel(path)
    except model.BadFile as error:
        pytest.fail(str(error), pytrace=False)
    with model.serving(scripted):
        yield scripted
    if problems := scripted.problems():
        pytest.fail("the model was not used as it is scripted\n" + "\n".join(problems), pytrace=False)
