package main

import (
	"context"
	"errors"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/telling"
)

// session is what a member does with the one partition that it is given; it leaves the group then.
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

// inGroup does the work as a member of the group that is made anew.
func inGroup(r *run, work func(sarama.ConsumerGroupSession, <-chan *sarama.ConsumerMessage) error) error {
	group, err := sarama.NewConsumerGroup(addresses(r), r.Name, settings())
	if err != nil {
		return err
	}
	ctx, leave := context.WithTimeout(background, telling.Limit)
	defer leave()
	s := &session{run: r, work: work, leave: leave, err: telling.ErrTimeout}
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
			r.Tell("read", read)
			r.Tell("committed", committed)
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
		r.Tell("first", records)
		group.MarkOffset(r.Name, 0, 4, "")
		group.Commit()
		return err
	})
	if err != nil {
		return err
	}
	return inGroup(r, func(_ sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) error {
		records, err := take(messages, 6)
		r.Tell("second", records)
		return err
	})
}

// rewind seeks with a consumer of the partition: a member of a group cannot.
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
			r.Tell("after_commit", records[0])
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
	r.Tell("after_seek", records[0])
	group.ResetOffset(r.Name, 0, 2, "")
	group.Commit()
	found, err := notes(admin, r, 1)
	r.Tell("committed", found[0].Offset)
	return err
}
