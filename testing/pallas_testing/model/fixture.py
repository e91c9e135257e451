"""The fixture `scripted_model`: a model for one test, which fails where something did not go by its script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_testing.model.scripted import ScriptedModel
from pallas_testing.model.serving import serving

MARKER = "scripted_model(path): the script that the fixture `scripted_model` follows, relative to the test's folder"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def scripted_model(request: pytest.FixtureRequest) -> Iterator[ScriptedModel]:
    """Yield a model on a free port of this machine, following the script that the marker of the same name names."""
    yield from model_of(request)


def model_of(request: pytest.FixtureRequest) -> Iterator[ScriptedModel]:
    """Yield the model of one test, then fail it where something did not go by the script."""
    marker = request.node.get_closest_marker("scripted_model")
    path = Path(request.node.path).parent / marker.args[0] if marker else None
    with serving(ScriptedModel(path)) as model:
        yield model
    if problems := model.problems():
        pytest.fail("the model was not used as it is scripted\n" + "\n".join(problems), pytrace=False)
