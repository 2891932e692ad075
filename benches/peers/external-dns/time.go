package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/external-dns/source"
)

// timing is what `time` prints. Times are in milliseconds, memory in MiB.
type timing struct {
	Runs      int `json:"runs"`
	Threads   int `json:"threads"`
	Objects   int `json:"objects"`
	Endpoints int `json:"endpoints"`
	// Read and Caches are paid once, at the start; the rest is what every loop repeats.
	Read      float64 `json:"readMs"`
	Caches    float64 `json:"cachesMs"`
	Median    float64 `json:"medianMs"`
	Least     float64 `json:"leastMs"`
	CPU       float64 `json:"cpuMedianMs"`
	LeastCPU  float64 `json:"cpuLeastMs"`
	Plan      float64 `json:"planLeastMs,omitempty"`
	Allocated float64 `json:"allocatedMiB"`
	Resident  float64 `json:"residentMiB"`
	Peak      float64 `json:"peakMiB"`
}

// measure runs the sources over filled caches again and again.
func measure(ctx context.Context, o *options) error {
	t := timing{Runs: o.runs, Threads: runtime.GOMAXPROCS(0)}
	all, err := t.load(ctx, o)
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	t.Resident = memory("VmRSS")
	resetPeak()
	if err := t.loop(ctx, o, all); err != nil {
		return err
	}
	t.Peak = memory("VmHWM")
	return json.NewEncoder(os.Stdout).Encode(t)
}

// load fills the caches; the informers hold copies of their own, so nothing else stays.
func (t *timing) load(ctx context.Context, o *options) ([]source.Source, error) {
	start := time.Now()
	w, err := read(o.files)
	if err != nil {
		return nil, err
	}
	t.Read, t.Objects = ms(time.Since(start)), w.count()
	start = time.Now()
	all, err := build(ctx, o, w)
	t.Caches = ms(time.Since(start))
	*w = world{}
	return all, err
}

func (t *timing) loop(ctx context.Context, o *options, all []source.Source) error {
	var wall, busy, planning []time.Duration
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range o.runs {
		start, spent := time.Now(), processor()
		found, err := collect(ctx, all)
		if err != nil {
			return err
		}
		wall, busy = append(wall, time.Since(start)), append(busy, processor()-spent)
		t.Endpoints = len(found)
		if o.stage == stagePlanned {
			start = time.Now()
			planned(o, found)
			planning = append(planning, time.Since(start))
		}
	}
	runtime.ReadMemStats(&after)
	t.Median, t.Least = summary(wall)
	t.CPU, t.LeastCPU = summary(busy)
	if len(planning) > 0 {
		_, t.Plan = summary(planning)
	}
	t.Allocated = float64(after.TotalAlloc-before.TotalAlloc) / float64(o.runs) / (1 << 20)
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func summary(times []time.Duration) (median, least float64) {
	slices.Sort(times)
	return ms(times[len(times)/2]), ms(times[0])
}

// processor is the time all threads of this process have run: a neighbour on the machine hardly moves it.
func processor() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// memory reads one line of the kernel's account of this process, in MiB; 0 where there is none.
func memory(field string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				return kib / 1024
			}
		}
	}
	return 0
}

// resetPeak makes the kernel forget the highest memory use so far, which reading the files caused.
func resetPeak() {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		fmt.Fprintln(os.Stderr, "external-dns-peer: the peak includes reading the files:", err)
	}
}
