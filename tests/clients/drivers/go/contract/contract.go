// Package contract is the driver contract for drivers in Go: command line, output lines, records, and the scenarios of
// group members.
package contract

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
	// MetadataMaxBytes is the longest metadata of a commit that brokers accept.
	MetadataMaxBytes = 4096
	concurrency      = 6
)

// ErrTimeout is the error of a wait that exceeds Limit.
var ErrTimeout = errors.New("timed out waiting for")

// Run is one scenario with one broker.
type Run struct {
	scenario  string
	Bootstrap string
	// Name of the topic and of the group.
	Name string
}

// Scenario runs a scenario and reports its results.
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

// Main runs BOOTSTRAP PREFIX SCENARIO... from the command line, several at a time: most of a scenario is waiting.
func Main(scenarios map[string]Scenario) {
	bootstrap, prefix := os.Args[1], os.Args[2]
	slots := make(chan struct{}, concurrency)
	var all sync.WaitGroup
	for _, name := range os.Args[3:] {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			run := &Run{name, bootstrap, prefix + "-" + name}
			run.runScenario(scenarios[name])
		})
	}
	all.Wait()
}

func (r *Run) runScenario(scenario Scenario) {
	if scenario == nil {
		r.print(map[string]any{"end": "unsupported", "reason": "the client has no call for it"})
	} else if err := scenario(r); err != nil {
		r.print(map[string]any{"end": "failed", "reason": err.Error()})
	} else {
		r.print(map[string]any{"end": "ok"})
	}
}

// Report prints a result.
func (r *Run) Report(result string, value any) {
	r.print(map[string]any{"result": result, "value": value})
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

// FormatRecord returns KEY=VALUE.
func FormatRecord(key, value []byte) string { return string(key) + "=" + string(value) }

// WaitUntil calls isDone until it returns true or an error.
func WaitUntil(what string, isDone func() (bool, error)) error {
	for limit := time.Now().Add(Limit); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if done, err := isDone(); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w %s", ErrTimeout, what)
}

// Sorted returns the sorted partitions, an empty list for nil.
func Sorted(partitions []int32) []int32 {
	sorted := append([]int32{}, partitions...)
	slices.Sort(sorted)
	return sorted
}

// Member is a consumer of the group that polls in the background.
type Member interface {
	// Wait returns the assigned partitions once there are this many.
	Wait(count int) ([]int32, error)
	// Rebalances returns how often partitions were assigned.
	Rebalances() int
	// Revoked returns all partitions that were revoked.
	Revoked() []int32
	// Close leaves the group, unless the member is static.
	Close() error
}

// MemberSettings are the settings of a member that differ between scenarios.
type MemberSettings struct {
	InstanceID    string
	IsCooperative bool
}

// NewMember starts a member of the run's group.
type NewMember func(*Run, MemberSettings) (Member, error)

// MemberState is the part of a Member that all clients share. Its owner locks it for its own fields too.
type MemberState struct {
	sync.Mutex
	rebalances int
	revoked    []int32
}

// NoteAssigned counts an assignment; the state is locked.
func (s *MemberState) NoteAssigned() { s.rebalances++ }

// NoteRevoked adds a revoked partition; the state is locked.
func (s *MemberState) NoteRevoked(partition int32) { s.revoked = append(s.revoked, partition) }

// Rebalances implements Member.
func (s *MemberState) Rebalances() int {
	s.Lock()
	defer s.Unlock()
	return s.rebalances
}

// Revoked implements Member.
func (s *MemberState) Revoked() []int32 {
	s.Lock()
	defer s.Unlock()
	return Sorted(s.revoked)
}

// WaitFor waits until the member has this many partitions; current runs with the state locked.
func (s *MemberState) WaitFor(count int, current func() []int32) ([]int32, error) {
	var partitions []int32
	err := WaitUntil(fmt.Sprintf("%d partitions", count), func() (bool, error) {
		s.Lock()
		defer s.Unlock()
		partitions = current()
		return len(partitions) == count, nil
	})
	return Sorted(partitions), err
}

// WhileMember runs the work while a member of the group has this many partitions.
func WhileMember(newMember NewMember, run *Run, partitions int, work func() error) error {
	member, err := newMember(run, MemberSettings{})
	if err != nil {
		return err
	}
	if _, err := member.Wait(partitions); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	return member.Close()
}

// TwoMembers returns the scenario two-members.
func TwoMembers(newMember NewMember) Scenario {
	return func(run *Run) error {
		first, second, err := bothDivided(run, newMember, MemberSettings{}, MemberSettings{})
		if err != nil {
			return err
		}
		return closeBoth(run, first, second)
	}
}

// StaticMember returns the scenario static-member.
func StaticMember(newMember NewMember) Scenario {
	return func(run *Run) error {
		one, two := MemberSettings{InstanceID: "one"}, MemberSettings{InstanceID: "two"}
		first, second, err := bothDivided(run, newMember, one, two)
		if err != nil {
			return err
		}
		before := second.Rebalances()
		if err := first.Close(); err != nil {
			return err
		}
		again, err := newMember(run, one)
		if err != nil {
			return err
		}
		partitions, err := again.Wait(2)
		if err != nil {
			return err
		}
		run.Report("again", partitions)
		run.Report("rebalances", second.Rebalances()-before)
		if err := again.Close(); err != nil {
			return err
		}
		return second.Close()
	}
}

// Cooperative returns the scenario cooperative.
func Cooperative(newMember NewMember) Scenario {
	return func(run *Run) error {
		settings := MemberSettings{IsCooperative: true}
		first, err := newMember(run, settings)
		if err != nil {
			return err
		}
		if _, err := first.Wait(4); err != nil {
			return err
		}
		second, err := newMember(run, settings)
		if err != nil {
			return err
		}
		if err := reportDivided(run, first, second); err != nil {
			return err
		}
		run.Report("revoked", first.Revoked())
		return closeBoth(run, first, second)
	}
}

// bothDivided starts two members and waits until each has two partitions.
func bothDivided(run *Run, newMember NewMember, ofFirst, ofSecond MemberSettings) (first, second Member, err error) {
	if first, err = newMember(run, ofFirst); err != nil {
		return
	}
	if second, err = newMember(run, ofSecond); err != nil {
		return
	}
	err = reportDivided(run, first, second)
	return
}

// reportDivided waits until each of the two members has two partitions, and reports the partitions.
func reportDivided(run *Run, first, second Member) error {
	a, err := first.Wait(2)
	if err != nil {
		return err
	}
	b, err := second.Wait(2)
	if err != nil {
		return err
	}
	run.Report("both", [][]int32{a, b})
	return nil
}

// closeBoth closes the first member, reports the partitions that the second has then, and closes the second.
func closeBoth(run *Run, first, second Member) error {
	if err := first.Close(); err != nil {
		return err
	}
	alone, err := second.Wait(4)
	if err != nil {
		return err
	}
	run.Report("alone", alone)
	return second.Close()
}
