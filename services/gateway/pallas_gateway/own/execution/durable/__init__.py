"""Graphs that outlive their caller's connection and the gateway's process (decision 0044)."""
