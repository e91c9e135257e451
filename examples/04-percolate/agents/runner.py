"""The agent that runs all agents that users have made: who it is, and what it may use, comes with each task."""

import json
from typing import Any

from fast_agent import FastAgent, McpAgent, PromptMessageExtended, RequestParams
from fast_agent.core.exceptions import FastAgentError

fast = FastAgent("percolate")
SERVER = "memory"


class Runner(McpAgent):
    """Answers a task that the memory sends as JSON: `instruction`, `prompt`, `tools`, `tenant_id`."""

    task: dict[str, Any]

    async def generate_impl(
        self, messages: list[PromptMessageExtended], request_params: RequestParams | None = None, tools: Any = None
    ) -> PromptMessageExtended:
        """Be the agent of the task, for one turn."""
        try:
            self.task = json.loads(messages[-1].all_text())
            instruction, prompt = self.task["instruction"], self.task["prompt"]
        except (ValueError, TypeError, KeyError):
            raise FastAgentError("the runner takes tasks of the memory only") from None
        self.set_instruction(f"You run an agent that a user has made.\n\n{instruction}")
        allowed = {f"{SERVER}__{tool}" for tool in self.task["tools"]}
        offered = [_without_tenant(tool) for tool in (await self.list_tools()).tools if tool.name in allowed]
        question = messages[-1].model_copy(deep=True)
        question.content = [messages[-1].content[0].model_copy(update={"text": prompt})]
        return await super().generate_impl([question], request_params, offered)

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, *args: Any, **options: Any) -> Any:
        """Call a tool for the tenant of the task, whatever the model has written."""
        if name.removeprefix(f"{SERVER}__") not in self.task["tools"]:
            raise FastAgentError(f"this agent has no tool {name}")
        return await super().call_tool(
            name, {**(arguments or {}), "tenant_id": self.task["tenant_id"]}, *args, **options
        )


def _without_tenant(tool: Any) -> Any:
    """Return a tool as the model sees it: which tenant it is for is not the model's to say."""
    schema = dict(tool.input_schema)
    schema["properties"] = {name: entry for name, entry in schema["properties"].items() if name != "tenant_id"}
    schema["required"] = [name for name in schema.get("required", []) if name != "tenant_id"]
    return tool.model_copy(update={"input_schema": schema})


@fast.custom(Runner, name="runner", servers=[SERVER])
async def runner() -> None: ...
