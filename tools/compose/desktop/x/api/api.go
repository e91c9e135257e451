// Package api has the one function that compose calls.
package api

// DesktopSocketPath is where nothing listens.
func DesktopSocketPath() string { return "" }
