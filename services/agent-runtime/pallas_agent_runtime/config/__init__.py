"""The configuration of one agent: by agents.yaml, the environment, secret files and the configuration of fast-agent."""
