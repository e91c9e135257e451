"""A machine of which everything is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from pallas_gen.comparison import side
from pallas_gen.doctor.machine import Machine
from pallas_gen.running.tool import Done

VERSIONS = {
    "docker version": '{"Version": "26.1.5+dfsg1"}\n',
    "docker compose": "2.26.1-4\n",
    "docker buildx": "github.com/docker/buildx 0.13.1+ds1\n",
    "helm version": "v3.19.0",
    "kubectl version": '{"clientVersion": {"major": "1", "gitVersion": "v1.32.4"}}',
}
MakeMachine = Callable[..., Machine]


def _nobody(url: str) -> Mapping[str, object]:
    raise side.NoRegistry(f"no registry answers at {url}: connection refused")


@pytest.fixture
def machine() -> MakeMachine:
    """A machine with every tool and image, free ports, known names and no fleet; `tools` replaces what tools print."""

    def make(tools: Mapping[str, Done | None] | None = None, **answers: object) -> Machine:
        def run(command: Sequence[str]) -> Done | None:
            words = " ".join(command)
            for start, done in (tools or {}).items():
                if words.startswith(start):
                    return done
            return Done(0, VERSIONS.get(" ".join(command[:2]), ""))

        base = Machine(
            run=run,
            refusal=lambda host, port: "",
            listeners=lambda port: [],
            unresolved=lambda hosts: {},
            document=_nobody,
            services=_nobody,
            environ={},
        )
        return replace(base, **answers)

    return make
