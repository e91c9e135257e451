"""The state that a member is left in; its lives are in test_supervisor.py."""

from __future__ import annotations


def test_what_refused_its_input_stays_refused_and_all_else_is_stopped(world, member, life):
    world.lives["wrong"] = [life(ready=None, ends=1, code=2)]
    world.run(member("wrong"), member("right"), until=120)
    states = {name: keeper.state for name, keeper in world.supervisor.keepers.items()}
    assert states == {"wrong": "refused", "right": "stopped"}
