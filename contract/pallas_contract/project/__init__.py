"""The folder beside agents.yaml as far as processes and containers need the same of it: both files, code, `.env`."""
