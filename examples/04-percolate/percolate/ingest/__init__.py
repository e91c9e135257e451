"""Documents and entities from a folder into the memory; one that is malformed is named, and holds up no other."""
