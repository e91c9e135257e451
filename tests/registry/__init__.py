"""Tests of the registry; a package, so that they can share `processes`."""
