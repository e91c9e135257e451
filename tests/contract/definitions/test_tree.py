"""The nodes of a syntax tree."""

from __future__ import annotations

import ast

from pallas_contract.definitions.tree import nodes


def test_they_are_those_of_ast_and_walked_once() -> None:
    tree, other = ast.parse("import a\nb = [1, f(c)]\n"), ast.parse("import d\n")
    assert nodes(tree) == tuple(ast.walk(tree))
    assert nodes(tree) is nodes(tree)
    assert nodes(other) == tuple(ast.walk(other)) != nodes(tree)
