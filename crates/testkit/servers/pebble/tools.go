//go:build tools

// Package tools names the programs that tests run, so that go.mod and go.sum pin them.
package tools

import (
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble"
)
