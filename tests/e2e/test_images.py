"""The images hold the bytecode of all that is served: every provider, every workflow, the gateway, the registry.

tools/shrink.py leaves the bytecode of other modules out; one that is imported at each start would cost seconds there.
"""

from __future__ import annotations

import pytest

from pallas_contract import __version__
from tests.installed import run

pytestmark = pytest.mark.docker

IMPORTED = {
    "pallas-agent": (
        "pallas_agent_runtime",
        "pallas_gateway",
        "fast_agent.llm",
        "fast_agent.agents",
        "fast_agent.core",
    ),
    "pallas-registry": ("pallas_registry",),
}
CODE = """
import importlib, pkgutil, sys

for name in {names}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:  # of a provider whose library the kit does not bring along
                assert not error.name.startswith(("fast_agent", "pallas")), error
"""
WITHOUT = """
import importlib.util, os, sys

files = [module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
files = [file for file in files if file.startswith("/opt/venv/") and file.endswith(".py")]
print(len(files))
print([file for file in files if not os.path.exists(importlib.util.cache_from_source(file))])
"""
TURNS = """
import asyncio, contextlib, http.server, json, os, tempfile, threading

asked = []

class Refusing(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        asked.append(self.path.partition("?")[0].rpartition("/")[2])
        body = json.dumps(dict(error=dict(message="no", type="invalid_request_error", code=400))).encode()
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
os.environ["FAST_AGENT_HOME"] = tempfile.mkdtemp()
with open(os.environ["FAST_AGENT_HOME"] + "/fast-agent.yaml", "w") as file:
    json.dump({name: dict(api_key="none", base_url=url) for name in ("anthropic", "google", "openai")}, file)

from fast_agent import FastAgent

app = FastAgent("all", parse_cli_args=False, quiet=True)
models = dict(openai="gpt-4.1", anthropic="claude-sonnet-4-5", google="gemini-2.5-flash")
for name, model in models.items():
    app.agent(name, "Help.", model=f"{name}.{model}")(lambda: None)

async def run():
    async with app.harness() as harness:
        session = await harness.session("all", agent_name="openai")
        for name in models:
            with contextlib.suppress(Exception):
                await session.agent_app[name].send("hello")

asyncio.run(run())
print(*asked)
"""
SHOWN = """
import glob, inspect, pkgutil, traceback
import key_value.aio  # it has beartype take part in all imports from here on
import anyio.to_thread, griffe, opentelemetry.trace, pygments.lexers

try:
    pygments.lexers.get_lexer_by_name("nobody's")
except pygments.util.ClassNotFound:
    print(*traceback.format_exc().splitlines()[-3:-1], sep="|")
print(len(glob.glob("/opt/venv/lib/python3.13/site-packages/mcp/**/*.py", recursive=True)))
print(inspect.getsource(anyio.to_thread.run_sync).startswith("async def run_sync"))
print("html" in {name for _, name, _ in pkgutil.iter_modules(pygments.lexers.__path__)})
"""
ASKED = ["completions", "messages", "gemini-2.5-flash:streamGenerateContent"]


@pytest.mark.parametrize("image", IMPORTED)
def test_nothing_that_is_served_is_compiled_at_the_start(image: str) -> None:
    count, without = in_container(image, CODE.format(names=IMPORTED[image]) + WITHOUT)
    assert int(count) > 100
    assert without == "[]"


def test_nothing_is_compiled_for_a_turn_of_any_api() -> None:
    *_, asked, count, without = in_container("pallas-agent", TURNS + WITHOUT)
    assert asked.split() == ASKED
    assert int(count) > 1000
    assert without == "[]"


def test_sources_that_are_packed_are_shown_and_listed() -> None:
    shown, plain, source, listed = in_container("pallas-agent", SHOWN)
    file, line = shown.split("|")
    assert '/opt/venv/lib/python3.13/site-packages/pygments/lexers/__init__.py", line ' in file
    assert line.strip().startswith("raise ClassNotFound(")
    assert (plain, source, listed) == ("0", "True", "True")


def in_container(image: str, code: str) -> list[str]:
    """Return the lines that it prints, run by the Python of an image without a network."""
    container = ("docker", "run", "--rm", "--no-healthcheck", "--network", "none", "--entrypoint", "python")
    return run(*container, f"{image}:{__version__}", "-P", "-c", code).splitlines()
