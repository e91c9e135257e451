"""Limits of a function (`constraints` of seed 003): it runs in a process of its own, which has no more than these."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fast_agent.core.exceptions import FastAgentError

from agents import bounded


async def limited(module: str, *arguments: str, seconds: float, megabytes: int) -> Any:
    """Return the JSON that `python -m MODULE ARGUMENTS` writes.

    Raises:
        FastAgentError: it had no time or memory left, or failed; its last line says why.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", bounded.__name__, str(megabytes), module, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate()
    except TimeoutError:
        raise FastAgentError(f"no answer within {seconds:g} s") from None
    finally:
        if process.returncode is None:  # the caller's time is over, or it has hung up
            process.kill()
            await process.wait()
    if process.returncode:
        raise FastAgentError((errors.decode().strip() or "it ended without a word").splitlines()[-1])
    return json.loads(output)
