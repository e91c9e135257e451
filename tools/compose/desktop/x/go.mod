module github.com/docker/secrets-engine/x

go 1.26.0
