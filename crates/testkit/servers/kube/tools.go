//go:build tools

// Package servers pins what scripts/servers builds for the tests: a Kubernetes API server, its store and its client.
// It is never compiled itself.
package servers

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
