"""The build context of the kit's images: their Dockerfiles and locks, and the code that is installed here."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path, PurePosixPath

_PACKAGE = Path(__file__).parents[1]
_CANDIDATES = (_PACKAGE / "image_sources", _PACKAGE.parents[1])
_FILES = (
    "Dockerfile.agent",
    "Dockerfile.registry",
    "requirements/agent.lock",
    "requirements/registry.lock",
    "tools/shrink.py",
)
_PACKAGES = {
    "pallas_contract": "contract",
    "pallas_service": "services/common",
    "pallas_agent_runtime": "services/agent-runtime",
    "pallas_gateway": "services/gateway",
    "pallas_registry": "services/registry",
    "pallas_testing": "testing",
}
"""Each package of the images, and its folder in the repository, which is where the Dockerfiles look for it."""

_PARTS = {"pallas_testing": frozenset({"__init__.py", "model"})}
"""What the images take of a package that is not for them as a whole."""


def context() -> dict[PurePosixPath, bytes]:
    """Return the files that the images are built from, by their paths in the repository.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    folder = _folder()
    files = {PurePosixPath(name): (folder / name).read_bytes() for name in _FILES}
    for package, root in roots().items():
        place = _PACKAGES[package]
        for path in sorted(root.rglob("*")):
            inner = path.relative_to(root)
            wanted = package not in _PARTS or inner.parts[0] in _PARTS[package]
            if wanted and path.is_file() and "__pycache__" not in path.parts:
                files[PurePosixPath(place, package, inner.as_posix())] = path.read_bytes()
    return files


def roots() -> dict[str, Path]:
    """Return the folder of each package of the images, by its name, as it is installed here.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    return {package: _root(package) for package in _PACKAGES}


def write(folder: Path) -> None:
    """Write the build context into `folder`."""
    for name, content in context().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _folder() -> Path:
    """Return the folder with the Dockerfiles: in the installed package, or the repository it was built from."""
    for folder in _CANDIDATES:
        if all((folder / name).is_file() for name in _FILES):
            return folder
    raise FileNotFoundError(2, "the Dockerfiles are missing from this installation", str(_CANDIDATES[0]))


def _root(package: str) -> Path:
    # by its name: the generator imports neither the registry nor the runtime
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(2, "this package is missing from this installation", package)
    return Path(spec.origin).parent
