"""Engineering: runs commands and looks after repositories."""

from fast_agent import FastAgent

fast = FastAgent("Pallas")


@fast.agent(
    name="engineering",
    instruction="You are Engineering, at home in shells and repositories. Look before you answer.",
    servers=["kernos", "gitea"],
)
async def engineering() -> None: ...
