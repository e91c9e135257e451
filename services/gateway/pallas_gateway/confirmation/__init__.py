"""Confirmations: one call of a high-risk tool, approved by another principal, consumed once by the identical call."""
