"""The script of a model as it is written, in YAML or in Python: closed keys, strict types."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from pallas_testing.model.exchange import Finish


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"must be a regular expression: {error}") from None
    return pattern


Text = Annotated[str, StringConstraints(min_length=1)]
Pattern = Annotated[str, AfterValidator(_compiles)]
Seconds = Annotated[float, Field(ge=0, le=3600)]


class Written(BaseModel):
    """Strict: no unknown key, no coercion of a text into a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Call(Written):
    """A tool to call."""

    tool: Text
    arguments: dict[str, Any] = {}
    """Texts in it, however deep, are templates."""
    if_missing: Literal["fail", "skip", "call"] = "fail"
    """What happens where the agent does not have the tool: the call counts as unscripted, is left away, or is made."""


class Error(Written):
    """An HTTP error, in the form of the API that was asked."""

    status: Annotated[int, Field(ge=400, le=599)]
    message: str = "the script says so"
    type: str = ""
    """The provider's word for it, if not the usual one of the status."""
    retry_after: Seconds | None = None


class Rule(Written):
    """When to speak, and what. All conditions have to hold; {user}, {results} and {caller} in texts are filled in."""

    user: Pattern = ""
    """Regular expression that is found in the last message of the user, in upper or lower case."""
    results: bool | Pattern | None = None
    """Whether tools have answered since then, or a regular expression that is found in what they answered."""
    tools: list[Text] = []
    """Tools that are offered to the model, among others."""
    images: int | list[str] | None = None
    """How many images came since the user's last message, or their media types in order."""
    structured: bool | None = None
    """Whether the answer has to fit a JSON Schema."""
    times: Annotated[int, Field(ge=1)] | None = None
    """How often the rule answers; a test fails when it did not. Without it: as often as it fits."""

    say: str = ""
    call: list[Call] = []
    """Tools to call, all at once."""
    json_: Any = Field(None, alias="json")
    """Structured output: any value, with templates in its texts."""
    finish: Finish = "stop"
    error: Error | None = None
    hang: bool = False
    """Never answer: the caller runs into its timeout."""

    delay: Seconds = 0
    """Seconds before the answer begins."""
    per_token: Seconds = 0
    """Seconds before each piece of the answer; a piece is a word, or 16 characters of a call's arguments."""
    cut_after: Annotated[int, Field(ge=0)] | None = None
    """Pieces after which the connection is closed, in the middle of the answer."""

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        spoken = bool(self.say or self.call or self.json_ is not None)
        if self.say and self.json_ is not None:
            raise ValueError("has `say` and `json`: an answer is a text or structured")
        if spoken + (self.error is not None) + self.hang != 1:
            raise ValueError(
                "needs an answer: `say`, `call` or `json`, or `error`, or `hang: true`, and not two of them"
            )
        if not spoken and (self.per_token or self.cut_after is not None):
            raise ValueError("`per_token` and `cut_after` need `say`, `call` or `json`")
        return self


class AgentScript(Written):
    """The rules of one agent, which is known by its instruction, its model, or both."""

    instruction: str = ""
    """Text that its instruction contains, however the lines are broken."""
    model: str = ""
    """Name of its model, without the provider."""
    rules: Annotated[list[Rule], Field(min_length=1)]

    @model_validator(mode="after")
    def _known(self) -> Self:
        if not self.instruction and not self.model:
            raise ValueError("needs `instruction` or `model`, by which its calls are known")
        return self


class Script(Written):
    """A whole script. The first agent that fits a call is asked, in it the first rule; then the rules of everybody."""

    models: list[Text] = []
    """Models that are listed, besides those of the agents; empty: `scripted`."""
    strict: bool = True
    """Refuse calls that no rule fits, and fail the test. False: answer them with a fixed text."""
    agents: dict[str, AgentScript] = {}
    rules: list[Rule] = []
    """Rules of everybody."""

    def listed(self) -> list[str]:
        """Return the models that the API lists, sorted."""
        names = {*self.models, *(agent.model for agent in self.agents.values() if agent.model)}
        return sorted(names) or ["scripted"]
