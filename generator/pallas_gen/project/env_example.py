"""`.env.example`: the variables that the project refers to and nothing in agents.yaml gives, for a user to fill in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pallas_contract import names
from pallas_contract.fleet import fastagent
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.validate.code import models
from pallas_gen.output import yaml as yaml_out

FILE = PurePosixPath(f"{names.DOTENV_FILE}.example")


def files(fleet: ResolvedFleet, config: Config, source: str, folder: Path) -> dict[PurePosixPath, str]:
    """Return the file for `folder`; none where nothing is referred to, or where the user has one of their own."""
    lines = "".join(f"# {why}\n{name}=\n" for name, why in sorted(references(fleet, config)))
    if not lines or _users_own(folder / FILE):
        return {}
    use = f"copy it to {names.DOTENV_FILE} beside {source} and fill it in"
    return {FILE: yaml_out.headed(lines, f"from {source}: {use}.")}


def _users_own(path: Path) -> bool:
    try:
        return yaml_out.edited_by_hand(path.read_text("utf-8", errors="replace"))
    except OSError:
        return False


def references(fleet: ResolvedFleet, config: Config) -> Iterator[tuple[str, str]]:
    """Yield name and reason of each variable that every agent needs and none is given."""
    given = {key for agent in fleet.agents.values() for key in (*agent.secrets, *agent.env)}
    variables = {**(fastagent.variables(config.tree) if config.tree else {}), **config.variables}
    for name, where in variables.items():
        if name not in given:
            yield name, f"{where.field} in {where.file}"
    provider = models.provider_of(config.default_model)
    if provider and config.model_position and any(models.without_key(fleet, config, ())):
        yield provider.key_variable, f"the key of {provider.name}, for default_model in {config.model_position.file}"
