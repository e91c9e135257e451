"""The fleet for these tests: the lines of agents.yaml about registration count, and there is a token for it."""

import re
import secrets
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fleet_file(tmp_path_factory):
    """A copy of the project in which agents of others may register themselves."""
    project = Path(__file__).parents[2]
    unwanted = shutil.ignore_patterns(".pallas", ".venv", "__pycache__")
    copy = shutil.copytree(project, tmp_path_factory.mktemp("open") / project.name, ignore=unwanted)
    (copy / "secrets").mkdir(exist_ok=True)
    (copy / "secrets" / "data_cleaner.txt").write_text(secrets.token_hex(32))
    path = copy / "agents.yaml"
    path.write_text(re.sub(r"^#(?=registry:|  [ a-z]+:)", "", path.read_text(), flags=re.MULTILINE))
    return path
