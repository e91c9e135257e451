"""Agents as their modules and cards define them, read without importing or running anything."""
