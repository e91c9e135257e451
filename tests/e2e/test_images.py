"""The images hold the bytecode of all that is served: every provider, every workflow, the registry.

tools/shrink.py leaves the bytecode of other modules out; one that is imported at each start would cost seconds there.
"""

from __future__ import annotations

import pytest

from pallas_contract import __version__
from tests.installed import run

pytestmark = pytest.mark.docker

IMPORTED = {
    "pallas-agent": ("pallas_agent_runtime", "fast_agent.llm", "fast_agent.agents", "fast_agent.core"),
    "pallas-registry": ("pallas_registry",),
}
CODE = """
import importlib, importlib.util, os, pkgutil, sys

for name in {names}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:  # of a provider whose library the kit does not bring along
                assert not error.name.startswith(("fast_agent", "pallas")), error
files = [module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
files = [file for file in files if file.startswith("/opt/venv/") and file.endswith(".py")]
print(len(files))
print([file for file in files if not os.path.exists(importlib.util.cache_from_source(file))])
"""


@pytest.mark.parametrize("image", IMPORTED)
def test_nothing_that_is_served_is_compiled_at_the_start(image: str) -> None:
    container = ("docker", "run", "--rm", "--network", "none", "--entrypoint", "python", f"{image}:{__version__}")
    count, without = run(*container, "-P", "-c", CODE.format(names=IMPORTED[image])).splitlines()[-2:]
    assert int(count) > 100
    assert without == "[]"
