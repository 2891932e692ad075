package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwv1alpha2 "sigs.k8s.io/gateway-api/apis/v1alpha2"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// world is everything the files hold, in the versions that external-dns asks its API server for.
// A Route in another version is taken as that version: the server would convert it the same way.
type world struct {
	namespaces   []corev1.Namespace
	gateways     []gwv1.Gateway
	listenerSets []gwv1.ListenerSet
	httpRoutes   []gwv1.HTTPRoute
	grpcRoutes   []gwv1.GRPCRoute
	tlsRoutes    []gwv1.TLSRoute
	tcpRoutes    []gwv1alpha2.TCPRoute
	udpRoutes    []gwv1alpha2.UDPRoute
}

func (w *world) count() int {
	return len(w.namespaces) + len(w.gateways) + len(w.listenerSets) + len(w.httpRoutes) + len(w.grpcRoutes) +
		len(w.tlsRoutes) + len(w.tcpRoutes) + len(w.udpRoutes)
}

func read(paths []string) (*world, error) {
	w := &world{}
	for _, path := range paths {
		if path == "-" {
			if err := w.readAll("standard input", os.Stdin); err != nil {
				return nil, err
			}
			continue
		}
		err := filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if at != path && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(at)) {
				return nil
			}
			file, err := os.Open(at)
			if err != nil {
				return err
			}
			defer file.Close()
			return w.readAll(at, file)
		})
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) readAll(name string, from io.Reader) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReaderSize(from, 1<<20))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = w.add(document)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, n, err)
		}
	}
}

func (w *world) add(document []byte) error {
	document = bytes.TrimSpace(document)
	if len(document) == 0 {
		return nil
	}
	if document[0] != '{' { // JSON is YAML already, and much faster to read as what it is
		var err error
		if document, err = yaml.YAMLToJSON(document); err != nil {
			return err
		}
	}
	var head struct {
		metav1.TypeMeta
		Items []rawObject `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &head); err != nil {
		return err
	}
	switch group := head.GroupVersionKind().Group; {
	case head.Kind == "List":
		for _, item := range head.Items {
			if err := w.add(item); err != nil {
				return err
			}
		}
		return nil
	case head.Kind == "Namespace" && group == "":
		return decode(document, &w.namespaces)
	case group != gwv1.GroupName:
		return nil
	}
	switch head.Kind {
	case "Gateway":
		return decode(document, &w.gateways)
	case "ListenerSet":
		return decode(document, &w.listenerSets)
	case "HTTPRoute":
		return decode(document, &w.httpRoutes)
	case "GRPCRoute":
		return decode(document, &w.grpcRoutes)
	case "TLSRoute":
		return decode(document, &w.tlsRoutes)
	case "TCPRoute":
		return decode(document, &w.tcpRoutes)
	case "UDPRoute":
		return decode(document, &w.udpRoutes)
	}
	return nil
}

type rawObject []byte

func (r *rawObject) UnmarshalJSON(b []byte) error { *r = bytes.Clone(b); return nil }

func decode[T any](document []byte, into *[]T) error {
	var object T
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &object); err != nil {
		return err
	}
	*into = append(*into, object)
	return nil
}
