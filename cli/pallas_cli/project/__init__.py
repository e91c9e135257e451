"""The project folder: `pallas init` makes one, `pallas add` adds to it. Nothing here needs an extra."""
