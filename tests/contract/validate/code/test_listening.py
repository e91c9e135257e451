"""A service that does not read where to listen is warned of."""

from __future__ import annotations

import pytest

from pallas_contract.fleet import source
from pallas_contract.validate import load
from pallas_contract.validate.code import listening

FLEET = """\
name: x
agents:
  a: {module: a, port: 8101}
services:
  weather:
    module: tools.weather
    port: 8102
"""


@pytest.mark.parametrize(
    ("files", "warned"),
    [
        ({"tools/weather.py": "import os\nos.environ['PALLAS_BIND']\n"}, False),
        ({"tools/weather.py": "from tools import own\n", "tools/own.py": "names.ENV_BIND\n"}, False),
        ({"tools/weather.py": "mcp.run(port=8102)\n", "tools/own.py": "PALLAS_BIND"}, True),
        ({"tools/weather.py": "x = = 1"}, False),
        ({}, False),
    ],
)
def test_a_module_that_never_reads_its_address(files: dict[str, str], warned: bool) -> None:
    tree = source.parse(FLEET, name="agents.yaml")
    told = [str(problem) for problem in listening.problems(load.parse(tree), tree, files.get)]
    message = "warning: agents.yaml:6:5 services.weather.module: `tools.weather` never reads PALLAS_BIND: nobody will"
    assert [text.startswith(message) for text in told] == ([True] if warned else [])
