"""The child that drives toolnexus: a JSON action on each line, the seconds it took back.

It is run by the Python of toolnexus' own environment, so it imports nothing of soulgit.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from toolnexus.agents import memory_tool  # type: ignore[import-not-found]


async def answer(tool: Any, line: str) -> dict[str, Any]:
    """Carry out one action; only the call itself is timed, within a running loop."""
    arguments = json.loads(line)
    began = time.perf_counter()
    result = await tool.execute(arguments)
    seconds = time.perf_counter() - began
    return {"error": result.output} if result.is_error else {"seconds": seconds}


async def serve(directory: str) -> None:
    """Answer line by line until there is none."""
    tool = memory_tool(directory)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(await answer(tool, line)), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
