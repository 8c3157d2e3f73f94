package main

import (
	"time"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
)

// copies is the number of records that exactly-once copies from partition 0 to partition 1.
const copies = 6

func committedSettings() *sarama.Config {
	config := settings()
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	return config
}

// transactional returns a producer with the run's name as transactional id.
func transactional(r *run, timeout time.Duration) (sarama.SyncProducer, error) {
	config := settings()
	config.Producer.Idempotent = true
	config.Producer.Transaction.ID = r.Name
	config.Producer.Transaction.Timeout = timeout
	config.Producer.Transaction.Retry.Backoff = 10 * time.Millisecond
	config.Net.MaxOpenRequests = 1
	return sarama.NewSyncProducer(addresses(r), config)
}

func message(r *run, partition int32, n int) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{
		Topic:     r.Name,
		Partition: partition,
		Key:       sarama.ByteEncoder(contract.Key(n)),
		Value:     sarama.ByteEncoder(contract.Value(n)),
	}
}

// begun returns a producer with a transaction that has one record.
func begun(r *run, timeout time.Duration, n int) (sarama.SyncProducer, error) {
	producer, err := transactional(r, timeout)
	if err != nil {
		return nil, err
	}
	if err := producer.BeginTxn(); err != nil {
		return nil, err
	}
	_, _, err = producer.SendMessage(message(r, 0, n))
	return producer, err
}

func reportCommitted(r *run, result string, partition int32, count int) error {
	read, err := readWith(committedSettings(), r, partition, sarama.OffsetOldest, count)
	r.Report(result, read)
	return err
}

// exactlyOnce reads each record again after an abort, with a new partition consumer: sarama's cannot seek.
func exactlyOnce(r *run) error {
	if _, err := send(r, copies, 1, settings()); err != nil {
		return err
	}
	producer, err := transactional(r, time.Minute)
	if err != nil {
		return err
	}
	defer producer.Close()
	for n := range copies {
		for attempt := range 1 + n%2 {
			if err := copyRecord(r, producer, n); err != nil {
				return err
			}
			end := producer.CommitTxn
			if attempt < n%2 {
				end = producer.AbortTxn
			}
			if err := end(); err != nil {
				return err
			}
		}
	}
	err = withAdmin(r, func(admin sarama.ClusterAdmin) error {
		found, err := notes(admin, r, 1)
		r.Report("committed", found[0].Offset)
		return err
	})
	if err != nil {
		return err
	}
	return reportCommitted(r, "copied", 1, copies)
}

// copyRecord copies a record in a new transaction.
func copyRecord(r *run, producer sarama.SyncProducer, n int) error {
	if _, err := readWith(committedSettings(), r, 0, int64(n), 1); err != nil {
		return err
	}
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	if _, _, err := producer.SendMessage(message(r, 1, n)); err != nil {
		return err
	}
	next := map[string][]*sarama.PartitionOffsetMetadata{r.Name: {{Partition: 0, Offset: int64(n) + 1}}}
	return producer.AddOffsetsToTxn(next, r.Name)
}

func fencedProducer(r *run) error {
	first, err := begun(r, time.Minute, 0)
	if err != nil {
		return err
	}
	second, err := begun(r, time.Minute, 1)
	if err != nil {
		return err
	}
	defer second.Close()
	if err := reportCode(r, "error", first.CommitTxn()); err != nil {
		return err
	}
	if err := second.CommitTxn(); err != nil {
		return err
	}
	return reportCommitted(r, "read", 0, 1)
}

func transactionTimeout(r *run) error {
	producer, err := begun(r, time.Second, 0)
	if err != nil {
		return err
	}
	plain, err := sarama.NewSyncProducer(addresses(r), settings())
	if err != nil {
		return err
	}
	defer plain.Close()
	if _, _, err := plain.SendMessage(message(r, 0, 1)); err != nil {
		return err
	}
	if err := reportCommitted(r, "read", 0, 1); err != nil {
		return err
	}
	return reportCode(r, "error", producer.CommitTxn())
}
