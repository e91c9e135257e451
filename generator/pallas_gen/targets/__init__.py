"""A plan -> the files of each target."""
