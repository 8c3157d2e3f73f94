package main

import (
	"context"
	"errors"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
)

// polling is a contract.Member with a goroutine that consumes.
type polling struct {
	contract.MemberState
	run     *run
	group   sarama.ConsumerGroup
	stop    context.CancelFunc
	done    chan error
	session sarama.ConsumerGroupSession // nil during a rebalance
}

func newMember(r *run, config *sarama.Config) (*polling, error) {
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
	m.Lock()
	defer m.Unlock()
	m.session = session
	if len(session.Claims()[m.run.Name]) > 0 {
		m.NoteAssigned()
	}
	return nil
}

func (m *polling) Cleanup(sarama.ConsumerGroupSession) error {
	m.Lock()
	defer m.Unlock()
	m.session = nil
	return nil
}

// ConsumeClaim reads a partition until it is revoked.
func (m *polling) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for range claim.Messages() {
	}
	m.Lock()
	defer m.Unlock()
	m.NoteRevoked(claim.Partition())
	return nil
}

func (m *polling) Wait(count int) ([]int32, error) {
	return m.WaitFor(count, func() []int32 {
		if m.session == nil {
			return nil
		}
		return m.session.Claims()[m.run.Name]
	})
}

func (m *polling) Close() error {
	m.stop()
	return errors.Join(<-m.done, m.group.Close())
}

// scenarioMember is a contract.NewMember.
func scenarioMember(r *run, member contract.MemberSettings) (contract.Member, error) {
	config := settings()
	config.Consumer.Group.InstanceId = member.InstanceID
	if member.IsCooperative {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
			sarama.NewBalanceStrategyCooperativeSticky(),
		}
	}
	return newMember(r, config)
}
