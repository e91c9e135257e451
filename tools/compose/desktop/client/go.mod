module github.com/docker/secrets-engine/client

go 1.26.0
