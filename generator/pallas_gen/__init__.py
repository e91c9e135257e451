"""The compiler: agents.yaml -> plan -> files of one deployment target."""
