package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
)

// polling is a contract.Member with a goroutine that consumes.
type polling struct {
	run        *run
	group      sarama.ConsumerGroup
	stop       context.CancelFunc
	done       chan error
	lock       sync.Mutex
	session    sarama.ConsumerGroupSession // nil during a rebalance
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
	var partitions []int32
	err := contract.WaitUntil(fmt.Sprintf("%d partitions", count), func() (bool, error) {
		m.lock.Lock()
		defer m.lock.Unlock()
		partitions = nil
		if m.session != nil {
			partitions = slices.Clone(m.session.Claims()[m.run.Name])
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
	return errors.Join(<-m.done, m.group.Close())
}

// scenarioMember is a contract.NewMember.
func scenarioMember(r *run, settings contract.MemberSettings) (contract.Member, error) {
	return newMember(r, func(config *sarama.Config) {
		config.Consumer.Group.InstanceId = settings.InstanceID
		if settings.IsCooperative {
			config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
				sarama.NewBalanceStrategyCooperativeSticky(),
			}
		}
	})
}
