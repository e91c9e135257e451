"""Everything of other people's that a fleet needs in its image: packages of its code, and MCP servers on stdio.

`launch` and `bake` run in the image too, where there is nothing but the standard library.
"""
