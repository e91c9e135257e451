"""Rules over imports: what neither Python, the project nor the agent image has, and no requirement names."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.definitions import read
from pallas_contract.definitions.module import Module
from pallas_contract.definitions.read import TextOf
from pallas_contract.definitions.tree import nodes
from pallas_contract.problems import Problem, Where

PATH = Path(__file__).with_name("image_modules.txt")
"""Modules that the packages in the agent image bring, one a line; written by the test of this module."""
_BROUGHT_BY = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "psycopg2": "psycopg2-binary",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "telegram": "python-telegram-bot",
    "yaml": "pyyaml",
}
"""Modules whose packages are called otherwise."""
_PATHS = frozenset({"path", "meta_path", "path_hooks", "addsitedir"})
"""Attributes of `sys` and `site` by which a module has Python look elsewhere too."""
_FASTMCP = "mcp.server.fastmcp"
"""A module of MCP's SDK 1, as most servers import it; the image and the kit's extra `agent` have 2."""
_NEWER = "write `from mcp.server import MCPServer`, as docs/services.md does"


@cache
def _image() -> frozenset[str]:
    return frozenset(PATH.read_text("utf-8").split())


def problems(module: Module, text_of: TextOf, distributions: Collection[str]) -> Iterator[Problem]:
    """Yield a warning per import that nothing brings; `distributions` are the packages that the project declares.

    One that may fail (`try`, `if TYPE_CHECKING`) is the user's own care.
    """
    for name, node in _unconditional(module.tree.body):
        top = name.partition(".")[0]
        if _is_old(name):
            message = f"imports `{_FASTMCP}`, which version 2 of the MCP SDK in the agent image does not have"
            hint = f"{_NEWER}, or run it from an image of its own"
            where = Where(module.name, node.lineno, node.col_offset + 1)
            yield Problem(where, message, hint, "warning", code=Code.OLD_FASTMCP)
        if is_absent(name, text_of, distributions):
            message = f"imports `{top}`, which the agent image does not have"
            where = Where(module.name, node.lineno, node.col_offset + 1)
            yield Problem(where, message, naming(name), "warning", code=Code.MISSING_PACKAGE)


def not_here(module: Module, text_of: TextOf, is_installed: Callable[[str], bool]) -> Iterator[Problem]:
    """Yield an error per import that fails in this environment; of a module that changes where Python looks none."""
    if any(isinstance(node, ast.Attribute) and node.attr in _PATHS for node in nodes(module.tree)):
        return
    for name, node in _unconditional(module.tree.body):
        top = name.partition(".")[0]
        where = Where(module.name, node.lineno, node.col_offset + 1)
        if _is_old(name):
            message = f"imports `{_FASTMCP}`, which version 2 of the MCP SDK here does not have: it does not start"
            hint = f"{_NEWER}, or run it in an environment of its own"
            yield Problem(where, message, hint, code=Code.OLD_FASTMCP)
        known = top == "__main__" or top in sys.stdlib_module_names or _local(name, text_of)
        if not known and not is_installed(top):
            package = _BROUGHT_BY.get(top, top)
            message = f"imports `{top}`, which is not installed here: it does not start"
            hint = f"install the package that brings it (`pip install {package}`), or remove the import"
            yield Problem(where, message, hint, code=Code.MISSING_PACKAGE)


def _is_old(name: str) -> bool:
    return f"{name}.".startswith(f"{_FASTMCP}.")


def is_absent(name: str, text_of: TextOf, distributions: Collection[str]) -> bool:
    """Return whether neither Python, the agent image, the project nor one of the packages has the module `name`."""
    top = name.partition(".")[0]
    here = top in sys.stdlib_module_names or top in _image() or _local(name, text_of)
    return not here and not is_brought(top, distributions)


def naming(name: str) -> str:
    """Return how to have the package that brings a module installed in the image, as far as its name tells."""
    top = name.partition(".")[0]
    package = _BROUGHT_BY.get(top, top)
    name_it = f"name `{package}` in requirements.txt beside agents.yaml (with a uv.lock: `uv add {package}`)"
    return f"{name_it}, or set `image.agent`"


def is_brought(module: str, distributions: Collection[str]) -> bool:
    """Return whether one of the packages brings a top-level module, as far as their names tell."""
    declared = {normalized(name) for name in distributions}
    words = (module, _BROUGHT_BY.get(module, module))
    return any(normalized(word) in entry for word in words for entry in declared)


def normalized(name: str) -> str:
    """Return the name of a package as indexes compare them (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _local(name: str, text_of: TextOf) -> bool:
    """Return whether a module, or the package it is in, lies in the project."""
    parts = name.split(".")
    return any(read.is_local(".".join(parts[:depth]), text_of) for depth in range(len(parts), 0, -1))


def _unconditional(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the absolute imports that run whenever the module is imported, each with its statement."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            # `from a import b` of a folder without __init__.py is the module `a.b`
            yield f"{node.module}.{node.names[0].name}", node
        elif isinstance(node, ast.ClassDef | ast.With):
            yield from _unconditional(node.body)
