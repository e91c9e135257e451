"""An MCP server on stdio with one tool, by hand: it starts in a moment, where one of the SDK's takes a second.

It stands in for whatever `uvx`, `npx`, `uv` and `docker` would download and run: links of these names lead here. Its
tool `look` answers with the program's words, so that a test sees which server was asked for.
"""

import json
import sys
from pathlib import Path

PROGRAM = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
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
        return {"content": [{"type": "text", "text": f"{PROGRAM} found it"}]}
    raise LookupError(method)


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = answer(request)
        except LookupError:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        print(json.dumps(reply), flush=True)
