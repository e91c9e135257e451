// Package dockerhub has the types that compose names, and no session.
package dockerhub

import (
	"context"
	"errors"
	"time"
)

// ErrNoSession is never returned: there is no client to ask.
var ErrNoSession = errors.New("no session")

// Option is ignored.
type Option struct{}

// Staging is ignored.
func Staging() Option { return Option{} }

// Claims of a session.
type Claims struct {
	Username  string
	ExpiresAt *time.Time
}

// UserSession of Docker Hub.
type UserSession struct {
	AccessToken string
	Claims      Claims
}

// Profile of a user.
type Profile struct{ Username string }

// ClientAuth is what compose asks of a client.
type ClientAuth interface {
	GetDefaultSession(ctx context.Context) (UserSession, error)
	GetDefaultProfile(ctx context.Context) (Profile, error)
}
