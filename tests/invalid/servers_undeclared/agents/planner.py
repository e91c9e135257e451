from fast_agent import FastAgent

fast = FastAgent("undeclared")


@fast.agent(name="planner", servers=["packer", "model", "deleted"])
async def planner() -> None: ...
