"""A scripted model as a test holds it: what it answers, what it was asked, and whether that was all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pallas_testing.model import reader
from pallas_testing.model.cassette.recorded import Cassette
from pallas_testing.model.cassette.replay import Replay
from pallas_testing.model.exchange import Answer, Failure, Reply, Request
from pallas_testing.model.matching import Matcher, Unscripted, describe
from pallas_testing.model.script import AgentScript, Rule, Script

Function = Callable[[Request], Reply | Failure | Answer | None]
"""An answer in Python; None leaves the call to the rules."""


class ScriptedModel:
    """A model that follows a script; `answer` may be called from one thread at a time."""

    def __init__(self, script: Script | Path | str | None = None, function: Function | None = None) -> None:
        """Take a script, or the path of a script or a cassette.

        Raises:
            BadFile: the file is neither.
        """
        self.url = ""
        """Where it is served, without `/v1`."""
        self.requests: list[Request] = []
        """Every request that could be read, in order."""
        self.unscripted: list[str] = []
        """Of each call that nobody scripted, what was asked."""
        self.abandoned: list[Request] = []
        """Requests whose caller hung up before the answer was complete."""
        self.outage: Failure | None = None
        """What every request is answered with while the provider is down, the list of models too."""
        self.function = function
        self._matcher = Matcher(Script())
        if isinstance(script, Script):
            self._matcher = Matcher(script)
        elif script is not None:
            self.load(Path(script))

    def load(self, path: Path | str) -> None:
        """Follow the script of a file from now on, or replay the cassette that it is.

        Raises:
            BadFile: the file is neither.
        """
        document = reader.read(Path(path))
        if "cassette" in document.data:
            replay = Replay(document.check(Cassette), document.name)
            self.function = replay
            self._matcher = Matcher(Script(models=replay.models))
            return
        self._matcher = Matcher(document.check(Script), document.where)

    def follow(self, script: Script) -> None:
        """Follow a script that is written in Python from now on."""
        self._matcher = Matcher(script)

    def rule(self, *, instruction: str = "", **keys: Any) -> None:
        """Add a rule behind those there are: for the agent whose instruction has this text, or for everybody.

        Raises:
            pydantic.ValidationError: a key is wrong; they are those of a rule in YAML.
        """
        script = self._matcher.script
        rule = Rule(**keys)
        if not instruction:
            self._matcher.script = script.model_copy(update={"rules": [*script.rules, rule]})
            return
        agent = script.agents.get(instruction)
        rules = [*agent.rules, rule] if agent else [rule]
        agents = {**script.agents, instruction: AgentScript(instruction=instruction, rules=rules)}
        self._matcher.script = script.model_copy(update={"agents": agents})

    @property
    def models(self) -> list[str]:
        """Return the models that the API lists."""
        return self._matcher.script.listed()

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request.

        Raises:
            Unscripted: nobody scripted it.
        """
        self.requests.append(request)
        if self.outage:
            return Answer(self.outage)
        try:
            result = self.function(request) if self.function else None
            if isinstance(result, Reply | Failure):
                return Answer(result)
            return result or self._matcher.answer(request)
        except Unscripted as error:
            self.unscripted.append(str(error))
            raise
        except Exception as error:  # the test's own function: a 500, and else nobody would hear why
            self.unscripted.append(f"the function that answers has failed: {type(error).__name__}: {error}")
            raise

    def refuse(self, what: str) -> None:
        """Note a call that was none of a model."""
        self.unscripted.append(what)

    def problems(self) -> list[str]:
        """Return what did not go by the script: calls nobody scripted, and rules whose calls never came."""
        return [*self.unscripted, *self._matcher.unused()]

    def verify(self) -> None:
        """Fail where something did not go by the script.

        Raises:
            AssertionError: with all of it.
        """
        if problems := self.problems():
            raise AssertionError("the model was not used as it is scripted\n" + "\n".join(problems))

    def environ(self) -> dict[str, str]:
        """Return the variables by which agents and the official clients find it; the keys are made up."""
        return {
            "OPENAI_API_KEY": "scripted",
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "ANTHROPIC_API_KEY": "scripted",
            "ANTHROPIC_BASE_URL": self.url,
        }

    def __str__(self) -> str:
        return "\n".join(map(describe, self.requests)) or "the model was not asked"
