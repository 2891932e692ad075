package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/external-dns/endpoint"
)

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// record is an endpoint with the field names of Gatepost's plan.
type record struct {
	Name             string            `json:"name"`
	Type             string            `json:"type"`
	Targets          []string          `json:"targets"`
	TTL              int64             `json:"ttl,omitempty"`
	SetIdentifier    string            `json:"setIdentifier,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	ProviderSpecific []property        `json:"providerSpecific,omitempty"`
}

// records prints what ought to exist, one JSON object a line, sorted.
func records(ctx context.Context, o *options) error {
	w, err := read(o.files)
	if err != nil {
		return err
	}
	all, err := build(ctx, o, w)
	if err != nil {
		return err
	}
	endpoints, err := collect(ctx, all)
	if err != nil {
		return err
	}
	if o.stage == stagePlanned {
		endpoints = planned(o, endpoints).Create
	}
	out := bufio.NewWriter(os.Stdout)
	for _, line := range sorted(endpoints) {
		fmt.Fprintln(out, string(line))
	}
	return out.Flush()
}

// sorted gives each endpoint as JSON. Every text starts with the name, then the type, so texts sort as records.
func sorted(endpoints []*endpoint.Endpoint) []json.RawMessage {
	lines := make([]json.RawMessage, 0, len(endpoints))
	for _, e := range endpoints {
		line, err := json.Marshal(toRecord(e))
		if err != nil {
			panic(err) // strings and numbers only
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
	return lines
}

func toRecord(e *endpoint.Endpoint) record {
	r := record{
		Name: e.DNSName, Type: e.RecordType, Targets: e.Targets, TTL: int64(e.RecordTTL),
		SetIdentifier: e.SetIdentifier, Labels: e.Labels,
	}
	for _, p := range e.ProviderSpecific {
		r.ProviderSpecific = append(r.ProviderSpecific, property{p.Name, p.Value})
	}
	slices.SortFunc(r.ProviderSpecific, func(a, b property) int {
		return strings.Compare(a.Name+"\x00"+a.Value, b.Name+"\x00"+b.Value)
	})
	return r
}
