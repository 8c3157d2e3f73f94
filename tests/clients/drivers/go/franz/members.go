package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"kproto/tests/clients/drivers/telling"
)

// polling is a telling.Member.
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
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, come map[string][]int32) { m.note(come[r.Name], true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { m.note(gone[r.Name], false) }),
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

// note what came or went; franz-go tells of a rebalance by which nothing did, too.
func (m *polling) note(partitions []int32, come bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, partition := range partitions {
		if come {
			m.partitions[partition] = true
		} else {
			delete(m.partitions, partition)
			m.revoked = append(m.revoked, partition)
		}
	}
	if come && len(partitions) > 0 {
		m.rebalances++
	}
}

func (m *polling) Wait(count int) ([]int32, error) {
	var has []int32
	err := telling.Until(fmt.Sprintf("%d partitions", count), func() (bool, error) {
		m.lock.Lock()
		defer m.lock.Unlock()
		has = nil
		for partition := range m.partitions {
			has = append(has, partition)
		}
		return len(has) == count, nil
	})
	return telling.Sorted(has), err
}

func (m *polling) Rebalances() int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.rebalances
}

func (m *polling) Revoked() []int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	return telling.Sorted(m.revoked)
}

func (m *polling) Close() error {
	m.stop()
	<-m.done
	m.client.Close()
	return nil
}

func twoMembers(r *run) error {
	first, second, both, err := pair(r, nil, nil)
	if err != nil {
		return err
	}
	r.Tell("both", both)
	return telling.Alone(r, first, second)
}

// pair starts two members; each has two partitions then.
func pair(r *run, ofFirst, ofSecond []kgo.Opt) (first, second *polling, both [][]int32, err error) {
	if first, err = newMember(r, ofFirst...); err != nil {
		return
	}
	if second, err = newMember(r, ofSecond...); err != nil {
		return
	}
	both, err = telling.Both(first, second)
	return
}

func staticMember(r *run) error {
	one, two := []kgo.Opt{kgo.InstanceID("one")}, []kgo.Opt{kgo.InstanceID("two")}
	first, second, both, err := pair(r, one, two)
	if err != nil {
		return err
	}
	r.Tell("both", both)
	before := second.Rebalances()
	if err := first.Close(); err != nil {
		return err
	}
	again, err := newMember(r, one...)
	if err != nil {
		return err
	}
	has, err := again.Wait(2)
	if err != nil {
		return err
	}
	r.Tell("again", has)
	r.Tell("rebalances", second.Rebalances()-before)
	if err := again.Close(); err != nil {
		return err
	}
	return second.Close()
}

func cooperative(r *run) error {
	first, err := newMember(r, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	if err != nil {
		return err
	}
	if _, err := first.Wait(4); err != nil {
		return err
	}
	second, err := newMember(r, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	if err != nil {
		return err
	}
	both, err := telling.Both(first, second)
	if err != nil {
		return err
	}
	r.Tell("both", both)
	r.Tell("revoked", first.Revoked())
	return telling.Alone(r, first, second)
}
