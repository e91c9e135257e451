"""Values that are made once a second for everybody."""

from __future__ import annotations

from pallas_registry.timing import Brief


async def test_a_brief_value_is_made_once_a_second_and_for_each_version(time) -> None:
    made: list[int] = []
    version = [0]

    def make() -> int:
        made.append(len(made) + 1)
        return made[-1]

    brief = Brief(make, clock=time.clock, version=lambda: version[0])
    assert [brief(), brief(), brief()] == [1, 1, 1]
    version[0] = 7
    assert [brief(), brief()] == [2, 2], "a change shows at once"
    await time.advance(1)
    assert [brief(), brief()] == [3, 3]
