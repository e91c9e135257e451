"""The static chart: in the installed package, or in the repository it was built from."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

_PACKAGE = Path(__file__).parents[2]
_CANDIDATES = (_PACKAGE / "chart", _PACKAGE.parents[1] / "deploy" / "helm" / "pallas")
_FILES = (
    ".helmignore",
    "Chart.yaml",
    "README.md",
    "values.yaml",
    "values.schema.json",
    "files/*.json",
    "files/*.py",
    "files/*.yaml",
    "templates/**/*.yaml",
    "templates/*.tpl",
    "templates/NOTES.txt",
)
"""What belongs to the chart: pip compiles `files/*.py` of an installed one, and leaves `__pycache__` there."""


def chart_dir() -> Path:
    """Return the folder of Chart.yaml.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for folder in _CANDIDATES:
        if (folder / "Chart.yaml").is_file():
            return folder
    raise FileNotFoundError(2, "the chart is missing from this installation", str(_CANDIDATES[0]))


def read() -> dict[PurePosixPath, str]:
    """Return every file of the chart by its path in it, and nothing that an installer or an editor put beside them."""
    folder = chart_dir()
    paths = sorted({path for pattern in _FILES for path in folder.glob(pattern) if path.is_file()})
    return {PurePosixPath(path.relative_to(folder).as_posix()): path.read_text("utf-8") for path in paths}
