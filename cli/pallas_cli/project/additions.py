"""What `pallas add` writes: the text of a module or card, by name. Pure."""

from __future__ import annotations

import keyword

from pallas_contract import names

_AGENT = '''\
"""{title}: say here what it is for."""

from fast_agent import FastAgent

fast = FastAgent("{name}")


def shout(text: str) -> str:
    """Return a text in capitals: a tool is a function with types and a docstring."""
    return text.upper()


@fast.agent(
    name="{name}",
    instruction="You are {title}. Say here what you do.",
    function_tools=[shout],
)
async def {function}() -> None: ...
'''

_CARD = """\
---
type: agent
name: {name}
---
You are {title}. Say here what you do.
"""

_SERVICE = '''\
"""{title}: an MCP server that the fleet brings along."""

import os

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

server = MCPServer("{name}")


@server.tool()
def echo(text: str) -> str:
    """Repeat a text: the docstring of a tool is what a model reads."""
    return text


if __name__ == "__main__":
    host, _, port = os.environ["PALLAS_BIND"].rpartition(":")
    security = TransportSecuritySettings(allowed_hosts=os.environ["PALLAS_ALLOWED_HOSTS"].split(","))
    server.run("streamable-http", host=host, port=int(port), stateless_http=True, transport_security=security)
'''


def identifier(name: str) -> str:
    """Return the name of the module of an agent or service, and of an agent's function: no word of Python's own."""
    module = name.replace("-", "_")
    return f"{module}_" if keyword.iskeyword(module) else module


def agent_module(name: str) -> str:
    """Return a module of fast-agent with a tool that is a function."""
    return _AGENT.format(name=name, title=names.title(name), function=identifier(name))


def card(name: str) -> str:
    """Return an agent card."""
    return _CARD.format(name=name, title=names.title(name))


def service_module(name: str) -> str:
    """Return an MCP server that listens where it is told to."""
    return _SERVICE.format(name=name, title=names.title(name))
