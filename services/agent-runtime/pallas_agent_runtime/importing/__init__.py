"""Faster imports of an agent: the garbage collector's thresholds, and what the build of the image compiles for them."""
