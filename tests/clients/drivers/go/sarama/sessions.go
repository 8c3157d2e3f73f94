package main

import (
	"context"
	"errors"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
)

// session runs the work of a member with its one partition; the member leaves the group after that.
type session struct {
	run   *run
	work  func(sarama.ConsumerGroupSession, <-chan *sarama.ConsumerMessage) error
	leave context.CancelFunc
	err   error
}

func (s *session) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (s *session) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (s *session) ConsumeClaim(group sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	defer s.leave()
	s.err = s.work(group, claim.Messages())
	return nil
}

// inGroup runs the work as a new member of the group.
func inGroup(r *run, work func(sarama.ConsumerGroupSession, <-chan *sarama.ConsumerMessage) error) error {
	group, err := sarama.NewConsumerGroup(addresses(r), r.Name, settings())
	if err != nil {
		return err
	}
	ctx, leave := context.WithTimeout(background, contract.Limit)
	defer leave()
	s := &session{run: r, work: work, leave: leave, err: contract.ErrTimeout}
	return errors.Join(group.Consume(ctx, []string{r.Name}, s), s.err, group.Close())
}

func consumeAndCommit(r *run) error {
	if err := sendTen(r); err != nil {
		return err
	}
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		return inGroup(r, func(group sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) error {
			var read []string
			var committed []int64
			for range 2 {
				records, err := take(messages, 5)
				if err != nil {
					return err
				}
				read = append(read, records...)
				group.MarkOffset(r.Name, 0, int64(len(read)), "")
				group.Commit()
				found, err := notes(admin, r, 1)
				if err != nil {
					return err
				}
				committed = append(committed, found[0].Offset)
			}
			r.Report("read", read)
			r.Report("committed", committed)
			return nil
		})
	})
}

func restartAndContinue(r *run) error {
	if err := sendTen(r); err != nil {
		return err
	}
	err := inGroup(r, func(group sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) error {
		records, err := take(messages, 4)
		r.Report("first", records)
		group.MarkOffset(r.Name, 0, 4, "")
		group.Commit()
		return err
	})
	if err != nil {
		return err
	}
	return inGroup(r, func(_ sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) error {
		records, err := take(messages, 6)
		r.Report("second", records)
		return err
	})
}

// rewind seeks with a partition consumer: a group member cannot seek.
func rewind(r *run) error {
	if err := sendTen(r); err != nil {
		return err
	}
	err := withAdmin(r, func(admin sarama.ClusterAdmin) error {
		return inGroup(r, func(group sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) error {
			return goBack(r, admin, group, messages)
		})
	})
	if err != nil {
		return err
	}
	return inGroup(r, func(_ sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) error {
		records, err := take(messages, 1)
		if err == nil {
			r.Report("after_commit", records[0])
		}
		return err
	})
}

func goBack(
	r *run, admin sarama.ClusterAdmin, group sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage,
) error {
	if _, err := take(messages, 10); err != nil {
		return err
	}
	group.MarkOffset(r.Name, 0, 10, "")
	group.Commit()
	records, err := readFrom(r, 0, 3, 1)
	if err != nil {
		return err
	}
	r.Report("after_seek", records[0])
	group.ResetOffset(r.Name, 0, 2, "")
	group.Commit()
	found, err := notes(admin, r, 1)
	r.Report("committed", found[0].Offset)
	return err
}
