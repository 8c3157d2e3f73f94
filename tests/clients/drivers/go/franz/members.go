package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"kproto/tests/clients/drivers/contract"
)

// polling is a contract.Member with a goroutine that polls.
type polling struct {
	client     *kgo.Client
	stop       context.CancelFunc
	done       chan struct{}
	lock       sync.Mutex
	partitions map[int32]bool
	revoked    []int32
	rebalances int
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
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, partition := range partitions {
		if isAssigned {
			m.partitions[partition] = true
		} else {
			delete(m.partitions, partition)
			m.revoked = append(m.revoked, partition)
		}
	}
	if isAssigned && len(partitions) > 0 {
		m.rebalances++
	}
}

func (m *polling) Wait(count int) ([]int32, error) {
	var partitions []int32
	err := contract.WaitUntil(fmt.Sprintf("%d partitions", count), func() (bool, error) {
		m.lock.Lock()
		defer m.lock.Unlock()
		partitions = nil
		for partition := range m.partitions {
			partitions = append(partitions, partition)
		}
		return len(partitions) == count, nil
	})
	return contract.Sorted(partitions), err
}

func (m *polling) Rebalances() int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.rebalances
}

func (m *polling) Revoked() []int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	return contract.Sorted(m.revoked)
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
