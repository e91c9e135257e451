"""compose.yaml."""

from pathlib import PurePosixPath

FILE = PurePosixPath("compose.yaml")
