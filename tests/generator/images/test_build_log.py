"""Why a build failed, from what docker prints of it in either way."""

from __future__ import annotations

import pytest

from pallas_gen.images import build_log

PIP = [
    "ERROR: Could not find a version that satisfies the requirement no-such==9 (from versions: none)",
    "ERROR: No matching distribution found for no-such==9",
]
CONFLICT = [
    "ERROR: Cannot install six==1.0 and six==2.0 because these package versions have conflicting dependencies.",
    "The conflict is caused by:",
    "    The user requested six==1.0",
    "    The user requested six==2.0",
    "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io",
]
BAKE = "bake: this failed: /usr/local/bin/python3 -m pip install no-such==9"


def printed(*lines: str, step: int = 8) -> str:
    """What docker prints with `--progress plain` of a step that fails, beside one that does not."""
    stream = [f"#{step} {number}.250 {line}" for number, line in enumerate(lines)]
    summary = [f"{number}.250 {line}" for number, line in enumerate(lines)][-10:]
    return "\n".join(
        [
            '#0 building with "default" instance using docker driver',
            f"#{step} [2/2] RUN --mount=type=bind python /build/bake.py requirements /build/requirements.txt",
            "#7 0.100 ERROR: of a step that went on all the same",
            *stream,
            f'#{step} ERROR: process "/bin/sh -c python /build/bake.py" did not complete successfully: exit code: 1',
            "------",
            " > [2/2] RUN --mount=type=bind python /build/bake.py requirements /build/requirements.txt:",
            *summary,
            "------",
            "Dockerfile.x-agent:12",
            "--------------------",
            "  12 | >>> RUN --mount=type=bind python /build/bake.py",
            "--------------------",
            'ERROR: failed to solve: process "/bin/sh -c python /build/bake.py" did not complete: exit code: 1',
        ]
    )


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["Looking in indexes", *PIP, BAKE], PIP),
        ([*CONFLICT[:2], "", *CONFLICT[2:], BAKE], CONFLICT),
        (["E: Unable to locate package no-such"], ["E: Unable to locate package no-such"]),
        (["npm error code E404", "npm error 404 Not Found", BAKE], ["npm error code E404", "npm error 404 Not Found"]),
        (["bake: x has no program y: a, b"], ["bake: x has no program y: a, b"]),
        (["killed", BAKE], [BAKE]),
    ],
)
def test_the_program_that_failed_says_why(lines: list[str], reason: list[str]) -> None:
    assert build_log.reason(printed(*lines)) == reason


def test_a_terminal_shows_the_end_of_the_step_with_colours() -> None:
    text = printed(*PIP).replace("#8 ", "=> => # ")
    coloured = text.replace("ERROR: failed", "\x1b[31mERROR: failed").replace("\n", "\x1b[0m\r\n")
    assert build_log.reason(coloured) == PIP


def test_where_no_program_ran_it_is_docker_that_says_why() -> None:
    last = "ERROR: failed to solve: mirror.example/python:3.13: not found"
    assert build_log.reason(f"#2 ERROR: mirror.example/python:3.13: not found\n------\n{last}\n") == [last]


def test_a_long_reason_is_cut_to_its_end() -> None:
    lines = ["ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", *(f"    line {number}" for number in range(99)), PIP[1]]
    reason = build_log.reason(printed(*lines))
    assert len(reason) == 12
    assert reason[-1] == PIP[1]


def test_what_says_nothing_gives_no_reason() -> None:
    assert build_log.reason("denied\n") == build_log.reason("") == []
