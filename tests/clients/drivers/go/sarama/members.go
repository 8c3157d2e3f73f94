package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/telling"
)

// polling is a telling.Member.
type polling struct {
	run        *run
	group      sarama.ConsumerGroup
	stop       context.CancelFunc
	done       chan error
	lock       sync.Mutex
	session    sarama.ConsumerGroupSession // nil while there is none
	revoked    []int32
	rebalances int
}

func newMember(r *run, change func(*sarama.Config)) (*polling, error) {
	config := settings()
	if change != nil {
		change(config)
	}
	group, err := sarama.NewConsumerGroup(addresses(r), r.Name, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(background)
	m := &polling{run: r, group: group, stop: stop, done: make(chan error, 1)}
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			err = group.Consume(ctx, []string{r.Name}, m)
		}
		m.done <- err
	}()
	return m, nil
}

func (m *polling) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = session
	if len(session.Claims()[m.run.Name]) > 0 {
		m.rebalances++
	}
	return nil
}

func (m *polling) Cleanup(sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = nil
	return nil
}

// ConsumeClaim reads a partition until it is revoked.
func (m *polling) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for range claim.Messages() {
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.revoked = append(m.revoked, claim.Partition())
	return nil
}

func (m *polling) Wait(count int) ([]int32, error) {
	var has []int32
	err := telling.Until(fmt.Sprintf("%d partitions", count), func() (bool, error) {
		m.lock.Lock()
		defer m.lock.Unlock()
		has = nil
		if m.session != nil {
			has = slices.Clone(m.session.Claims()[m.run.Name])
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
	return errors.Join(<-m.done, m.group.Close())
}

// pair starts two members; each has two partitions then.
func pair(r *run, ofFirst, ofSecond func(*sarama.Config)) (first, second *polling, both [][]int32, err error) {
	if first, err = newMember(r, ofFirst); err != nil {
		return
	}
	if second, err = newMember(r, ofSecond); err != nil {
		return
	}
	both, err = telling.Both(first, second)
	return
}

func twoMembers(r *run) error {
	first, second, both, err := pair(r, nil, nil)
	if err != nil {
		return err
	}
	r.Tell("both", both)
	return telling.Alone(r, first, second)
}

func staticMember(r *run) error {
	one := func(config *sarama.Config) { config.Consumer.Group.InstanceId = "one" }
	two := func(config *sarama.Config) { config.Consumer.Group.InstanceId = "two" }
	first, second, both, err := pair(r, one, two)
	if err != nil {
		return err
	}
	r.Tell("both", both)
	before := second.Rebalances()
	if err := first.Close(); err != nil {
		return err
	}
	again, err := newMember(r, one)
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
	settings := func(config *sarama.Config) {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
			sarama.NewBalanceStrategyCooperativeSticky(),
		}
	}
	first, err := newMember(r, settings)
	if err != nil {
		return err
	}
	if _, err := first.Wait(4); err != nil {
		return err
	}
	second, err := newMember(r, settings)
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
