package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider"
	"sigs.k8s.io/external-dns/provider/inmemory"
	"sigs.k8s.io/external-dns/provider/rfc2136"
	"sigs.k8s.io/external-dns/provider/webhook"
	"sigs.k8s.io/external-dns/registry"
	"sigs.k8s.io/external-dns/registry/noop"
	"sigs.k8s.io/external-dns/registry/txt"
)

// outcome is what `sync` prints: the changes that were handed to the provider, and how long each part took.
type outcome struct {
	Create    []json.RawMessage `json:"create"`
	UpdateOld []json.RawMessage `json:"updateOld"`
	UpdateNew []json.RawMessage `json:"updateNew"`
	Delete    []json.RawMessage `json:"delete"`
	Times     times             `json:"times"`
}

// times of the parts of a loop, in milliseconds.
type times struct {
	Records float64 `json:"recordsMs"`
	Source  float64 `json:"sourceMs"`
	Plan    float64 `json:"planMs"`
	Apply   float64 `json:"applyMs"`
}

// synchronize makes one whole loop, in the order in which the controller of external-dns makes it.
func synchronize(ctx context.Context, o *options) error {
	w, err := read(o.files)
	if err != nil {
		return err
	}
	all, err := build(ctx, o, w)
	if err != nil {
		return err
	}
	filter := endpoint.NewDomainFilterWithOptions(
		endpoint.WithDomainFilter(o.cfg.DomainFilter), endpoint.WithDomainExclude(o.cfg.DomainExclude),
		endpoint.WithRegexDomainFilter(o.cfg.RegexDomainFilter), endpoint.WithRegexDomainExclude(o.cfg.RegexDomainExclude))
	reg, err := openRegistry(ctx, o.cfg, filter)
	if err != nil {
		return err
	}
	var out outcome
	start := time.Now()
	lap := func() float64 { passed := ms(time.Since(start)); start = time.Now(); return passed }
	current, err := reg.Records(ctx)
	if err != nil {
		return fmt.Errorf("records: %w", err)
	}
	out.Times.Records = lap()
	ctx = context.WithValue(ctx, provider.RecordsContextKey, current)
	desired, err := collect(ctx, all)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	out.Times.Source = lap()
	changes, err := difference(o.cfg, reg, filter, current, desired)
	if err != nil {
		return err
	}
	// Sorted before they are applied: the registry adds to the lists.
	out.Create, out.Delete = sorted(changes.Create), sorted(changes.Delete)
	out.UpdateOld, out.UpdateNew = sorted(changes.UpdateOld), sorted(changes.UpdateNew)
	out.Times.Plan = lap()
	if changes.HasChanges() {
		if err := reg.ApplyChanges(ctx, changes); err != nil {
			return fmt.Errorf("apply: %w", err)
		}
	}
	out.Times.Apply = lap()
	return json.NewEncoder(os.Stdout).Encode(out)
}

func difference(cfg *externaldns.Config, reg registry.Registry, filter *endpoint.DomainFilter, current, desired []*endpoint.Endpoint) (*plan.Changes, error) {
	policy, ok := plan.Policies[cfg.Policy]
	if !ok {
		return nil, fmt.Errorf("there is no policy %q", cfg.Policy)
	}
	desired, err := reg.AdjustEndpoints(desired)
	if err != nil {
		return nil, fmt.Errorf("adjust: %w", err)
	}
	p := &plan.Plan{
		Policies:       []plan.Policy{policy},
		Current:        current,
		Desired:        desired,
		DomainFilter:   endpoint.MatchAllDomainFilters{filter, reg.GetDomainFilter()},
		ManagedRecords: cfg.ManagedDNSRecordTypes,
		ExcludeRecords: cfg.ExcludeDNSRecordTypes,
		OwnerID:        reg.OwnerID(),
		OldOwnerID:     cfg.TXTOwnerOld,
	}
	return p.Calculate().Changes, nil
}

// openRegistry opens the provider and puts the registry around it. Importing all providers would take in every cloud.
func openRegistry(ctx context.Context, cfg *externaldns.Config, filter *endpoint.DomainFilter) (registry.Registry, error) {
	var p provider.Provider
	var err error
	switch cfg.Provider {
	case externaldns.ProviderRFC2136:
		p, err = rfc2136.New(ctx, cfg, filter)
	case externaldns.ProviderWebhook:
		p, err = webhook.New(ctx, cfg, filter)
	case externaldns.ProviderInMemory:
		p, err = inmemory.New(ctx, cfg, filter)
	default:
		err = fmt.Errorf("there is no provider %q here; there are inmemory, rfc2136, webhook", cfg.Provider)
	}
	if err != nil {
		return nil, err
	}
	if cfg.Registry == externaldns.RegistryNoop {
		return noop.New(cfg, p)
	}
	return txt.New(cfg, p)
}
