"""The nodes of a syntax tree, for the rules that each look through all of them."""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(1024)  # as many as `module.parse` remembers
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, in the order of `ast.walk`, which takes longer than any of the rules."""
    return tuple(ast.walk(tree))
