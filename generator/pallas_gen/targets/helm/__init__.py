"""The Helm chart, its values and their schema."""

from pathlib import PurePosixPath

FILE = PurePosixPath("values.yaml")
