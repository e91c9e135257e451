"""Faults as verbs, each undone when its test ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from pallas_testing.targets.base import HALF_WAY, CannotDisturb, Target, Undo
from pallas_testing.targets.relay import Course

_TELL = """
import json, urllib.error, urllib.request
body = {body!r}
request = urllib.request.Request({url!r}, json.dumps(body).encode() if body else None, method={method!r})
try:
    urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(request, timeout=30).close()
except urllib.error.HTTPError as error:
    raise SystemExit(f"{{error}}: {{error.read().decode()}}")
"""


class Provider:
    """The scripted models of a fleet, which can be had to fail."""

    def __init__(self, target: Target, begun: Callable[..., None]) -> None:
        """`begun` is told each fault with what undoes it."""
        self._target = target
        self._begun = begun

    def down(self, status: int = 503) -> None:
        """Answer every request with an error."""
        self._fail("provider.down", status=status, message="the provider is down")

    def rate_limit(self, retry_after: float = 1.0) -> None:
        """Answer every request with 429, and ask for peace for so many seconds."""
        self._fail("provider.rate_limit", status=429, message="too many requests", retry_after=retry_after)

    def _fail(self, fault: str, **outage: object) -> None:
        for model in self._target.file.models:
            self._tell(model, "PUT", outage)
            self._begun(fault, partial(self._tell, model, "DELETE", {}), *self._target.file.agents)

    def _tell(self, model: str, method: str, body: Mapping[str, object]) -> None:
        code = _TELL.format(url=f"{self._target.own_url(model)}/outage", method=method, body=dict(body))
        try:
            self._target.execute(model, code)
        except CannotDisturb as error:
            raise CannotDisturb(
                f"provider: {model} is no scripted model of the kit, one of before, or one that records: {error}"
            ) from None


class Faults:
    """What a test can do to the agents of a fleet. A target that has no such fault refuses it with CannotDisturb."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._undo = ExitStack()
        self.done: list[str] = []
        """The faults of this test, oldest first: `kill research`."""
        self.members: dict[str, None] = {}
        """Those who had them, in order."""

    def kill(self, agent: str) -> None:
        """End the agent as a crash would; afterwards it runs again, at the end of the test at the latest."""
        self._do(f"kill {agent}", self._target.kill, self._target.restore, agent)

    def pause(self, agent: str) -> None:
        """Let the agent run no further, with its port still open, until it is resumed or the test ends."""
        self._do(f"pause {agent}", self._target.pause, self._target.resume, agent)

    def resume(self, agent: str) -> None:
        """Let a paused agent run on."""
        self._target.resume(agent)

    def restart(self, agent: str) -> None:
        """End the agent as a deployment does, and start it again."""
        self._do(f"restart {agent}", self._target.restart, self._target.restore, agent)

    def remove(self, agent: str) -> None:
        """Take the agent away, its name included; it is made anew when the test ends."""
        self._do(f"remove {agent}", self._target.remove, self._target.recreate, agent)

    def scale(self, agent: str, count: int) -> None:
        """Run as many replicas of the agent; how many there were when the test ends."""
        self._note(f"scale {agent} to {count}", lambda: self._target.scale(agent, count), agent)

    def partition(self, one: str, other: str) -> None:
        """Let two members, or one and `registry`, reach each other no more."""
        self._note(f"partition {one}, {other}", lambda: self._target.partition(one, other), one, other)

    def slow(self, caller: str, callee: str, latency: float, jitter: float = 0.0) -> None:
        """Delay what `caller` asks of `callee` and the answers, each by `latency` seconds, more or less `jitter`."""
        course = Course(latency=latency, jitter=jitter, cut_after=None)
        self._lead("slow", caller, callee, course)

    def cut(self, caller: str, callee: str, after_bytes: int) -> None:
        """Reset each connection from `caller` to `callee` once so many bytes of answers have come through."""
        course = Course(latency=0.0, jitter=0.0, cut_after=after_bytes)
        self._lead("cut", caller, callee, course)

    def rotate_secret(self, name: str, content: str) -> None:
        """Give a secret file, relative to agents.yaml, new content; who reads it at the start is started again."""
        rotate = partial(self._target.rotate_secret, name, content)
        self._note(f"rotate_secret {name}", rotate, *self._target.file.agents)

    def fill_disk(self, agent: str) -> None:
        """Leave no space where the agent may write."""
        self._note(f"fill_disk {agent}", lambda: self._target.fill_disk(agent), agent)

    def undo(self) -> None:
        """Undo all faults, the last one first."""
        self._undo.close()

    @property
    def provider(self) -> Provider:
        """The model of the fleet: a service with `provides: openai` that is a scripted model of the kit.

        Raises:
            CannotDisturb: there is none.
        """
        if not self._target.file.models:
            raise CannotDisturb("provider: agents.yaml has no service that provides a model")
        return Provider(self._target, self._begun)

    def _do(self, fault: str, do: Callable[[str], None], undo: Callable[[str], None], agent: str) -> None:
        def inject() -> Undo:
            do(agent)
            return partial(undo, agent)

        self._note(fault, inject, agent)

    def _lead(self, fault: str, caller: str, callee: str, course: Course) -> None:
        lead = partial(self._target.lead, fault, caller, callee, course)
        self._note(f"{fault} {caller} -> {callee}", lead, caller, callee)

    def _note(self, fault: str, inject: Callable[[], Undo], *members: str) -> None:
        """Inject a fault; one that fails half way has undone itself, and its members are waited for all the same."""
        try:
            undo = inject()
        except BaseException as error:
            if any(note.startswith(HALF_WAY) for note in getattr(error, "__notes__", ())):
                self.done.append(f"{fault} (failed half way)")
                self.members |= dict.fromkeys(members)
            raise
        self._begun(fault, undo, *members)

    def _begun(self, fault: str, undo: Undo, *members: str) -> None:
        self.done.append(fault)
        self.members |= dict.fromkeys(members)
        self._undo.callback(undo)
