"""What a program has imported, and which models of pydantic it has built, when it is ready; it ends then.

Also whether it has looked up compiled texts until then.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROGRAM = """
import dataclasses, json, os, sys
from pydantic import BaseModel
{imports}

def models(base=BaseModel):
    return {{base}}.union(*map(models, base.__subclasses__())) - {{BaseModel}}

def ready(usual={hook}):
    usual()
    built = sum(model.__pydantic_complete__ for model in models())
    report = {{"modules": sorted(sys.modules), "defined": len(models()), "built": built}}
    report["texts"] = "exec" in vars(dataclasses)
    sys.stdout.write(json.dumps(report) + "\\n")
    sys.stdout.flush()
    os._exit(0)

{hook} = ready
sys.exit({main})
"""


def start_report(
    imports: str, *, hook: str, main: str, folder: Path, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the report: `modules`, how many models are `defined` and `built`, and whether `texts` are looked up.

    The program makes the `imports`, runs `main` in `folder`, and is ready when it calls what is named by `hook`.
    """
    code = PROGRAM.format(imports=imports, hook=hook, main=main)
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))
