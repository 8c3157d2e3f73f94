// Package telling is what the drivers written in Go share: their command line, the lines that they print, and records.
package telling

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// Limit of each wait.
	Limit = 20 * time.Second
	// Largest is the longest metadata of a commit that brokers take.
	Largest = 4096
	atOnce  = 6
)

// ErrTimeout is wrapped in what a wait ends with.
var ErrTimeout = errors.New("timed out waiting for")

// Run is one scenario with one broker.
type Run struct {
	scenario  string
	Bootstrap string
	// Name of its topic and of its group.
	Name string
}

// Scenario does what its README says and tells what it sees.
type Scenario func(*Run) error

// Note is an offset with its metadata.
type Note struct {
	Offset   int64
	Metadata string
}

// Notes are committed by commit-with-metadata, by partition.
var Notes = []Note{{42, "first: note"}, {7, "\"zweite\" Notiz - ü"}}

// MarshalJSON writes [offset, metadata].
func (n Note) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{n.Offset, n.Metadata})
}

// Main runs BOOTSTRAP PREFIX SCENARIO... from the command line, a few at a time: most of a scenario is waiting.
func Main(scenarios map[string]Scenario) {
	bootstrap, prefix := os.Args[1], os.Args[2]
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, name := range os.Args[3:] {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			run := &Run{name, bootstrap, prefix + "-" + name}
			run.carryOut(scenarios[name])
		})
	}
	all.Wait()
}

func (r *Run) carryOut(scenario Scenario) {
	if scenario == nil {
		r.print(map[string]any{"end": "unsupported", "why": "no call for it"})
	} else if err := scenario(r); err != nil {
		r.print(map[string]any{"end": "failed", "why": err.Error()})
	} else {
		r.print(map[string]any{"end": "ok"})
	}
}

// Tell prints a fact.
func (r *Run) Tell(fact string, value any) {
	r.print(map[string]any{"fact": fact, "value": value})
}

var printing sync.Mutex

func (r *Run) print(line map[string]any) {
	line["scenario"] = r.scenario
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

// Key of record number n.
func Key(n int) []byte { return fmt.Append(nil, n) }

// Value of record number n.
func Value(n int) []byte { return fmt.Append(nil, "value ", n) }

// Shown is how a record is told.
func Shown(key, value []byte) string { return string(key) + "=" + string(value) }

// Until asks again and again.
func Until(what string, isDone func() (bool, error)) error {
	for limit := time.Now().Add(Limit); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if done, err := isDone(); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w %s", ErrTimeout, what)
}

// Sorted are the partitions as they are told: a list even if there are none.
func Sorted(partitions []int32) []int32 {
	sorted := append([]int32{}, partitions...)
	slices.Sort(sorted)
	return sorted
}

// Member is a consumer of the group that polls by itself.
type Member interface {
	// Wait until it has this many partitions.
	Wait(count int) ([]int32, error)
	// Rebalances is how often it was assigned something.
	Rebalances() int
	// Revoked are the partitions that it was told to give up since it came.
	Revoked() []int32
	// Close leaves the group, unless the member is static.
	Close() error
}

// Both waits until each of the two has two partitions.
func Both(first, second Member) ([][]int32, error) {
	a, err := first.Wait(2)
	if err != nil {
		return nil, err
	}
	b, err := second.Wait(2)
	return [][]int32{a, b}, err
}

// Alone closes the first and tells what the second has then.
func Alone(run *Run, first, second Member) error {
	if err := first.Close(); err != nil {
		return err
	}
	alone, err := second.Wait(4)
	if err != nil {
		return err
	}
	run.Tell("alone", alone)
	return second.Close()
}
