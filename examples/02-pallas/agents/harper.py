"""Harper, the orchestrator: has no tools of its own, only colleagues."""

from fast_agent import FastAgent

fast = FastAgent("Pallas")


@fast.agent(
    name="harper",
    instruction="You are Harper, an orchestrator. Delegate to your colleagues and sum up what they answer.",
    servers=["research", "engineering"],
)
async def harper() -> None: ...
