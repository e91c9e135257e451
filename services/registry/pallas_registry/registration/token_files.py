"""The tokens by which agents outside of agents.yaml prove who they are, read from secret files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pallas_contract import limited_file, names
from pallas_contract.codes import Code
from pallas_contract.fleet.model import Registration
from pallas_contract.problems import Problem, Refused, Where
from pallas_service.access.static_tokens import SHORTEST, StaticTokens


@dataclass(frozen=True, slots=True)
class RegistrationTokens:
    """The tokens that are accepted, and the slugs of the agents that each is bound to, by the token's name."""

    accepted: StaticTokens
    bindings: Mapping[str, frozenset[str]]

    def name_of(self, token: str) -> str | None:
        """Return the name of `token` in agents.yaml; None for one that is not accepted."""
        return self.accepted.caller(token)

    def admits(self, name: str, agent: str) -> bool:
        """Return True when the token of this name may speak for `agent`."""
        return admits(self.bindings, name, agent)


def bindings(registration: Registration) -> dict[str, frozenset[str]]:
    """Return the slugs of the agents that each token is bound to."""
    return {name: frozenset(map(names.slug, token.agents)) for name, token in registration.tokens.items()}


def admits(bindings: Mapping[str, frozenset[str]], name: str, agent: str) -> bool:
    """Return True when the token of this name may speak for `agent`: bound to it, or neither of them bound at all."""
    bound = bindings[name]
    # a token for certain agents stands for no others, and those agents for no other token
    if bound:
        return names.slug(agent) in bound
    return not any(names.slug(agent) in others for others in bindings.values())


def paths(registration: Registration, folder: Path, secrets: Path) -> dict[str, Path]:
    """Return the file of each token: in the secrets folder, else where agents.yaml (in `folder`) says."""
    files = {}
    for name, token in registration.tokens.items():
        mounted = secrets / names.registration_secret(name)
        files[name] = mounted if mounted.is_file() else folder / token.file
    return files


def read(registration: Registration, files: Mapping[str, Path], agents_file: str) -> RegistrationTokens:
    """Read all tokens; `files` are their `paths`.

    Raises:
        Refused: with each file that cannot be read or holds no token, never with what is in it.
    """
    problems: list[Problem] = []
    tokens: dict[str, str] = {}
    for name, path in files.items():
        where = Where(agents_file, field=f"registry.registration.tokens.{name}.file")
        file = registration.tokens[name].file
        try:
            token = limited_file.text(path).strip()
        except OSError as error:
            reason = f"{file} cannot be read: {limited_file.reason(error)}"
            hint = "create it for the registry to read, for example `openssl rand -hex 32`"
            problems.append(Problem(where, reason, hint, code=Code.SECRET_FILE))
            continue
        except UnicodeDecodeError:
            token = ""
        # what is in the file is in no message: it may be most of a secret
        if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
            reason = f"{file} holds no token: {SHORTEST} or more characters in one line, without spaces"
            problems.append(Problem(where, reason, "`openssl rand -hex 32` makes one", code=Code.SECRET_FILE))
        elif token in tokens.values():
            problems.append(
                Problem(where, "is the same token as another one's", "give each its own", code=Code.SAME_TOKEN)
            )
        tokens[name] = token
    if problems:
        raise Refused(problems)
    return RegistrationTokens(StaticTokens(tokens), bindings(registration))
