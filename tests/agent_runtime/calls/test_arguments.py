"""The arguments of the two asking tools."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pallas_agent_runtime.calls import arguments as calls_arguments
from pallas_agent_runtime.calls.arguments import BadArgument, Image, Question

DATA = base64.b64encode(b"picture").decode()
LIMIT = 1000
IMAGE = {"data": DATA, "mime_type": "image/png"}


def test_what_is_right_is_taken_over() -> None:
    parsed = calls_arguments.parse({"message": "", "images": [IMAGE], "session_id": "s"}, LIMIT)
    assert parsed == Question("", (Image(DATA, "image/png"),), "s")
    assert calls_arguments.parse({"message": "x", "images": None, "session_id": None}, LIMIT) == Question("x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "message: is required"),
        ({"message": 1}, "message: must be text, not a number"),
        ({"message": None}, "message: must be text, not null"),
        ({"message": "x", "mesage": "y"}, "mesage: unknown argument; known: message, images, session_id"),
        ({"message": "x", "images": {}}, "images: must be a list, not an object"),
        ({"message": "x", "images": ["a"]}, "images[0]: must be an object with data and mime_type, not text"),
        ({"message": "x", "images": [IMAGE, {"data": DATA}]}, "images[1].mime_type: is required"),
        ({"message": "x", "images": [{**IMAGE, "x": 1}]}, "images[0].x: unknown argument; known: data, mime_type"),
        ({"message": "x", "images": [{**IMAGE, "data": "a"}]}, "images[0].data: is not base64"),
        ({"message": "x", "images": [{**IMAGE, "data": f"{DATA}*"}]}, "images[0].data: is not base64"),
        ({"message": "x", "images": [{**IMAGE, "data": "ä"}]}, "images[0].data: is not base64"),
        ({"message": "x", "images": [{**IMAGE, "data": ""}]}, "images[0].data: is empty"),
        (
            {"message": "x", "images": [{**IMAGE, "mime_type": "image/x"}]},
            "images[0].mime_type: must be one of image/gif, image/jpeg, image/png, image/webp",
        ),
        ({"message": "x\ud800"}, "message: has half of a surrogate pair (character 2)"),
        ({"message": "x", "session_id": "\udfff"}, "session_id: has half of a surrogate pair (character 1)"),
        ({"message": "x", "session_id": ""}, "session_id: must have 1 to 256 characters"),
        ({"message": "x", "session_id": "s" * 257}, "session_id: must have 1 to 256 characters"),
        ({"message": "x", "session_id": True}, "session_id: must be text, not a boolean"),
    ],
)
def test_what_is_wrong_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadArgument) as bad:
        calls_arguments.parse(arguments, LIMIT)
    assert str(bad.value) == message


@pytest.mark.parametrize(
    ("limit", "named"),
    [(4 + 2 * len(DATA), ""), (3 + 2 * len(DATA), "images[1].data"), (4, "images[0].data"), (3, "message")],
)
def test_what_is_too_large_is_named(limit: int, named: str) -> None:
    arguments = {"message": "ää", "images": [IMAGE, IMAGE]}
    try:
        calls_arguments.parse(arguments, limit)
        said = ""
    except BadArgument as bad:
        said = str(bad)
    assert said == (f"{named}: too large; message and images may have {limit} bytes together" if named else "")


_value = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
_image = st.dictionaries(st.sampled_from(["data", "mime_type", "x"]), _value)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.fixed_dictionaries(
        {"message": st.text(max_size=20)}, optional={"images": _value | st.lists(_value | _image), "session_id": _value}
    )
)
def test_nothing_but_a_bad_argument_is_ever_raised(arguments: dict[str, Any]) -> None:
    named = "images", "session_id"
    try:
        question = calls_arguments.parse(arguments, LIMIT)
    except BadArgument as bad:
        said = str(bad)
    else:
        said = "images" if question.text == arguments["message"] else ""
    assert said.startswith(named)
