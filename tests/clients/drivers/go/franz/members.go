package main

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"kproto/tests/clients/drivers/contract"
)

// polling is a contract.Member with a goroutine that polls.
type polling struct {
	contract.MemberState
	client     *kgo.Client
	stop       context.CancelFunc
	done       chan struct{}
	partitions map[int32]bool
}

func newMember(r *run, more ...kgo.Opt) (*polling, error) {
	ctx, stop := context.WithCancel(background)
	m := &polling{stop: stop, done: make(chan struct{}), partitions: map[int32]bool{}}
	cl, err := member(r, append([]kgo.Opt{
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) { m.note(assigned[r.Name], true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, revoked map[string][]int32) { m.note(revoked[r.Name], false) }),
	}, more...)...)
	if err != nil {
		stop()
		return nil, err
	}
	m.client = cl
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			cl.PollFetches(ctx)
		}
	}()
	return m, nil
}

// note assigned or revoked partitions; franz-go also calls back after a rebalance without changes.
func (m *polling) note(partitions []int32, isAssigned bool) {
	m.Lock()
	defer m.Unlock()
	for _, partition := range partitions {
		if isAssigned {
			m.partitions[partition] = true
		} else {
			delete(m.partitions, partition)
			m.NoteRevoked(partition)
		}
	}
	if isAssigned && len(partitions) > 0 {
		m.NoteAssigned()
	}
}

func (m *polling) Wait(count int) ([]int32, error) {
	return m.WaitFor(count, func() []int32 { return slices.Collect(maps.Keys(m.partitions)) })
}

func (m *polling) Close() error {
	m.stop()
	<-m.done
	m.client.Close()
	return nil
}

// scenarioMember is a contract.NewMember.
func scenarioMember(r *run, settings contract.MemberSettings) (contract.Member, error) {
	var more []kgo.Opt
	if settings.InstanceID != "" {
		more = append(more, kgo.InstanceID(settings.InstanceID))
	}
	if settings.IsCooperative {
		more = append(more, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	}
	return newMember(r, more...)
}
