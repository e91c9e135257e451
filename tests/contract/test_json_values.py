"""Values are counted before a text is parsed."""

from __future__ import annotations

import pytest

from pallas_contract.json_values import has_more_values


@pytest.mark.parametrize(
    ("body", "has_more"),
    [
        ("[1,1,1]", False),
        ("[1,1,1,1]", True),
        ("[{},{}]", True),
        ('["a, b, c, [d], {e}, \\"f, g, h, i"]', False),
        ('["a \\\\",1,1,1,"b \\\\"]', True),
        ('{"a":1,"b":1,"c":1,"d":1}', True),
        ('"a,""a,""a,""a,""a,""a,""a,""a,""a,"', True),
    ],
    ids=["as many", "numbers", "objects", "a text", "texts that end with a backslash", "members", "no JSON"],
)
def test_values_are_counted_where_they_are_none_of_a_text(body: str, has_more: bool) -> None:
    assert has_more_values(body.encode(), 3) is has_more
