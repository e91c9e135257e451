"""Who may call what, and where a caller is led: pure decisions over what agents.yaml says (seed 004, Security)."""
