//go:build tools

// Package tools names the programs that tests run, so that go.mod and go.sum pin them.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
