"""The commands of `pallas-gen` that are more than a line: each adds itself to the command line."""
