"""Where the static chart is: in the installed package, or in the repository it was built from."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

_PACKAGE = Path(__file__).parents[2]
_PLACES = (_PACKAGE / "chart", _PACKAGE.parents[1] / "deploy" / "helm" / "pallas")


def chart_dir() -> Path:
    """The folder of Chart.yaml.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for place in _PLACES:
        if (place / "Chart.yaml").is_file():
            return place
    raise FileNotFoundError(2, "the chart is missing from this installation", str(_PLACES[0]))


def read() -> dict[PurePosixPath, str]:
    """Every file of the chart by its path in it."""
    folder = chart_dir()
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {PurePosixPath(path.relative_to(folder).as_posix()): path.read_text("utf-8") for path in paths}
