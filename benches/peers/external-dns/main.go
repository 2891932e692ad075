// Command external-dns-peer is the real external-dns v0.23.0 over plain Kubernetes manifests.
//
// Objects are read from files and handed to the informers of external-dns through in-memory clients; sources, planner,
// registry and providers are its own packages, and so is the reading of its flags. See README.md beside this file.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	log "github.com/sirupsen/logrus"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/source"
	"sigs.k8s.io/external-dns/source/annotations"
	"sigs.k8s.io/external-dns/source/wrappers"
)

const usage = `usage: external-dns-peer records|time|sync -f PATH ... [--stage source|wrapped|planned] [--runs N] [flags of external-dns]`

// Stages of the loop, each with those before it.
const (
	stageSource  = "source"  // what the bare sources publish
	stageWrapped = "wrapped" // after validation, duplicates and properties
	stagePlanned = "planned" // what the planner creates in an empty zone
)

// defaults are given to flags of external-dns that are not on the command line.
var defaults = []struct {
	flag   string
	values []string
}{
	{"--source", []string{"gateway-httproute", "gateway-grpcroute", "gateway-tlsroute", "gateway-tcproute", "gateway-udproute"}},
	{"--provider", []string{"inmemory"}},
	{"--policy", []string{"sync"}},
	{"--log-level", []string{"error"}},
}

type options struct {
	mode  string
	files []string
	stage string
	runs  int
	cfg   *externaldns.Config
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "external-dns-peer: %v\n%s\n", err, usage)
		os.Exit(2)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "external-dns-peer:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return nil, errors.New("no mode")
	}
	o := &options{mode: args[0], stage: stageSource, runs: 5, cfg: externaldns.NewConfig()}
	rest, err := o.takeOwn(args[1:])
	if err != nil {
		return nil, err
	}
	if len(o.files) == 0 {
		return nil, errors.New("no input: give -f")
	}
	return o, o.cfg.ParseFlags(withDefaults(rest))
}

// takeOwn reads the flags of this program and returns those of external-dns.
func (o *options) takeOwn(args []string) (rest []string, err error) {
	for len(args) > 0 {
		flag, value, isJoined := strings.Cut(args[0], "=")
		args = args[1:]
		if flag != "-f" && flag != "--stage" && flag != "--runs" {
			rest = append(rest, strings.TrimSuffix(flag+"="+value, map[bool]string{false: "="}[isJoined]))
			continue
		}
		if !isJoined {
			if len(args) == 0 {
				return nil, fmt.Errorf("%s needs a value", flag)
			}
			value, args = args[0], args[1:]
		}
		switch flag {
		case "-f":
			o.files = append(o.files, value)
		case "--stage":
			o.stage = value
		case "--runs":
			if o.runs, err = strconv.Atoi(value); err != nil || o.runs < 1 {
				return nil, fmt.Errorf("--runs %s is no count", value)
			}
		}
	}
	return rest, nil
}

func withDefaults(args []string) []string {
	given := func(flag string) bool {
		for _, arg := range args {
			if arg == flag || strings.HasPrefix(arg, flag+"=") {
				return true
			}
		}
		return false
	}
	all := args
	for _, d := range defaults {
		if given(d.flag) {
			continue
		}
		for _, value := range d.values {
			all = append(all, d.flag+"="+value)
		}
	}
	return all
}

func run(o *options) error {
	level, err := log.ParseLevel(o.cfg.LogLevel)
	if err != nil {
		return err
	}
	log.SetLevel(level)
	log.SetOutput(os.Stderr)
	annotations.SetAnnotationPrefix(o.cfg.AnnotationPrefix)
	if o.cfg.EnableLegacyAnnotationPrefix {
		annotations.SetLegacyAnnotationPrefix(annotations.LegacyAnnotationPrefix)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch o.mode {
	case "records":
		return records(ctx, o)
	case "time":
		return measure(ctx, o)
	case "sync":
		o.stage = stageWrapped
		return synchronize(ctx, o)
	}
	return fmt.Errorf("there is no mode %q\n%s", o.mode, usage)
}

// build makes the sources, either bare or inside the wrappers that the controller puts around them.
func build(ctx context.Context, o *options, w *world) ([]source.Source, error) {
	cfg, err := source.NewSourceConfig(o.cfg, source.WithClientGenerator(newClients(w)))
	if err != nil {
		return nil, err
	}
	if o.stage == stageSource {
		return source.ByNames(ctx, cfg, cfg.ClientGenerator())
	}
	wrapped, err := wrappers.Build(ctx, cfg)
	return []source.Source{wrapped}, err
}

func collect(ctx context.Context, all []source.Source) ([]*endpoint.Endpoint, error) {
	var out []*endpoint.Endpoint
	for _, s := range all {
		endpoints, err := s.Endpoints(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, endpoints...)
	}
	return out, nil
}

// planned is what the planner makes of an empty zone.
func planned(o *options, desired []*endpoint.Endpoint) *plan.Changes {
	p := &plan.Plan{
		Policies:       []plan.Policy{&plan.SyncPolicy{}},
		Desired:        desired,
		ManagedRecords: o.cfg.ManagedDNSRecordTypes,
		ExcludeRecords: o.cfg.ExcludeDNSRecordTypes,
		OwnerID:        o.cfg.TXTOwnerID,
	}
	return p.Calculate().Changes
}
