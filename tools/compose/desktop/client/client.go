// Package client stands in for Docker Desktop's secrets engine, which not every module proxy serves: compose asks it for
// a sign-in of Docker Desktop, finds none, and goes on with the Docker CLI's credentials, as on any machine without one.
package client

import (
	"time"

	"github.com/docker/secrets-engine/client/dockerhub"
)

// ConnectError is what compose takes for "Docker Desktop is not here".
type ConnectError struct{}

func (*ConnectError) Error() string { return "Docker Desktop is not here" }

// Option is ignored.
type Option struct{}

// Client is never made.
type Client struct{}

// HubAuth is never called.
func (*Client) HubAuth(...dockerhub.Option) dockerhub.ClientAuth { return nil }

// WithSocketPath is ignored.
func WithSocketPath(string) Option { return Option{} }

// WithTimeout is ignored.
func WithTimeout(time.Duration) Option { return Option{} }

// New finds no Docker Desktop.
func New(...Option) (*Client, error) { return nil, &ConnectError{} }
