"""An MCP server on stdio with one tool, by hand: it starts in a moment, where one of the SDK's takes a second.

It stands in for whatever `uvx`, `npx`, `uv` and `docker` would download and run: links of these names lead here. Its
tool `look` answers with the program's words, so that a test sees which server was asked for. `uv run FILE` runs it.
"""

import json
import os
import sys
from pathlib import Path

PROGRAM = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
if sys.argv[1:2] == ["run"] and PROGRAM.startswith("uv "):
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
TOOL = {
    "name": "look",
    "description": "Look something up.",
    "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
}


def answer(message: dict) -> dict:
    method = message["method"]
    if method == "initialize":
        about = {"name": "stand-in", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        what = message["params"]["arguments"]["what"]
        text = f"{PROGRAM} was told {ask()}" if "ask a human" in what else f"{PROGRAM} found it"
        return {"content": [{"type": "text", "text": text}]}
    raise LookupError(method)


def ask() -> str:
    """Ask the client for its human's words, as servers of the handshake era do, in the middle of a call."""
    form = {"type": "object", "properties": {"size": {"type": "string"}}}
    params = {"message": "Which size?", "requestedSchema": form}
    print(json.dumps({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}), flush=True)
    while (reply := json.loads(sys.stdin.readline())).get("id") != "q":
        pass
    return json.dumps(reply.get("result") or reply["error"]["message"])


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = answer(request)
        except LookupError:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        print(json.dumps(reply), flush=True)
