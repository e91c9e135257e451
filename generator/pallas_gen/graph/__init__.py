"""Who calls whom in a fleet, drawn for a terminal, for Mermaid, for Graphviz and as a picture. Pure.

`members` is what is drawn, `texts` draws it as text, `layers` places it and `svg` draws it there, `formats` names all.
"""
