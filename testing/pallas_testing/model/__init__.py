"""A model that follows a script, for tests of agents without a provider: docs/scripted-model.md."""

from pallas_testing.model.command import serve
from pallas_testing.model.exchange import Answer, Failure, Image, Message, Reply, Request, Tool, ToolCall
from pallas_testing.model.matching import Unscripted
from pallas_testing.model.reader import BadFile
from pallas_testing.model.script import AgentScript, Call, Error, Rule, Script
from pallas_testing.model.scripted import ScriptedModel
from pallas_testing.model.serving import serving

__all__ = [
    "AgentScript",
    "Answer",
    "BadFile",
    "Call",
    "Error",
    "Failure",
    "Image",
    "Message",
    "Reply",
    "Request",
    "Rule",
    "Script",
    "ScriptedModel",
    "Tool",
    "ToolCall",
    "Unscripted",
    "serve",
    "serving",
]
