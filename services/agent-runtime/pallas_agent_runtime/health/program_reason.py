"""Why an MCP server that the agent starts itself is not there, in words: everybody reads an agent's health."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pallas_agent_runtime.health import cause
from pallas_agent_runtime.health.last_words import LastWords
from pallas_contract.documents.reason import SEPARATOR
from pallas_contract.fleet import fastagent_files
from pallas_contract.fleet.fastagent import Command
from pallas_contract.problems import Where
from pallas_contract.validate import masking

LONGEST = 200
"""Characters of a server's output in a reason; the log has all of its last lines."""


@dataclass(frozen=True, slots=True)
class ProgramReasons:
    """The words for servers on stdio, by `commands` as they are written."""

    commands: Mapping[str, Command] = field(default_factory=dict)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Values that are shown nowhere."""
    secretive: bool = False
    """Whether a reason has no word of the command line and the output: the agent asks its callers for a token."""

    def command_line(self, name: str) -> str:
        """Return the command line of a server, for people; of one in the file of secrets only the program."""
        command = self.commands.get(name)
        if command is None:
            return name
        secret = command.where.file in fastagent_files.SECRETS
        return masking.command_line([command.program, *(() if secret else command.arguments)])

    def output(self, words: LastWords) -> list[str]:
        """Return the last lines of a server's stderr, without secrets."""
        return [masking.masked(line, self.secrets) for line in words.lines()]

    def not_executed(self, name: str, error: OSError) -> str:
        """Return why the system started no program; `error` is what it said."""
        command = self.commands.get(name) or Command(os.path.basename(os.fsdecode(error.filename or name)), Where(""))
        program = "its program" if self.secretive else f"`{masking.masked(command.program, self.secrets)}`"
        if command.folder and not os.path.isdir(command.folder):
            secret = self.secretive or command.where.file in fastagent_files.SECRETS
            return "its `cwd` is no folder here" if secret else f"its `cwd` {command.folder} is no folder here"
        if isinstance(error, PermissionError):
            return f"{program} may not be executed: `chmod +x` it"
        if isinstance(error, FileNotFoundError) and not self._is_path_there(command):
            return "its program is not here" if self.secretive else f"there is no program {program} here"
        return f"{program} cannot be executed: {error.strerror}"

    def ended(self, name: str, words: LastWords | None, fallback: str, *, answered: bool = False) -> str:
        """Return how a server ended that was started, by its last words; `fallback` where nobody knows that.

        `answered` says that it did answer before.
        """
        program = "it" if self.secretive else f"`{self.command_line(name)}`"
        ending = words.ending if words else ""
        how = f" ({ending})" if ending else ""
        if ending == "SIGTERM" and not answered:  # it is the MCP SDK that ends what does not end with its input
            fallback = "did not answer, and was ended"
            how = ""
        lines = self.output(words) if words and not self.secretive else []
        reason = cause.line(lines)
        last = f": {masking.shortened(reason, LONGEST)}" if reason else ""
        # What comes from elsewhere makes no part of a message of health.
        return f"{program} {fallback}{how}{last}".replace(SEPARATOR, ", ")

    @staticmethod
    def _is_path_there(command: Command) -> bool:
        program = command.program
        return "/" in program and os.path.exists(os.path.join(command.folder or "", program))
