"""The project folder, in what processes and containers have in common: agents.yaml, configuration, code, `.env`."""
