package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kproto/tests/clients/drivers/contract"
)

// copies is the number of records that exactly-once copies from partition 0 to partition 1.
const copies = 6

// exactlyOnce reads both partitions as a member, since a session has no other way to commit offsets.
func exactlyOnce(r *run) error {
	if _, err := send(r, copies, 1, kgo.DisableIdempotentWrite()); err != nil {
		return err
	}
	if err := copyAll(r); err != nil {
		return err
	}
	err := withAdmin(r, func(admin *kadm.Client) error {
		found, err := admin.FetchOffsets(background, r.Name)
		r.Report("committed", found[r.Name][0].At)
		return err
	})
	if err != nil {
		return err
	}
	return reportCommitted(r, "copied", 1, copies)
}

// copyAll copies each record in a transaction; the first one of each odd record is aborted.
func copyAll(r *run) error {
	session, err := kgo.NewGroupTransactSession(append(secured(r),
		kgo.ConsumerGroup(r.Name),
		kgo.ConsumeTopics(r.Name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(50*time.Millisecond),
		kgo.TransactionalID(r.Name),
		kgo.RequireStableFetchOffsets(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)...)
	if err != nil {
		return err
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(background, contract.Limit)
	defer cancel()
	aborted := map[int64]bool{}
	for copied := 0; copied < copies; {
		fetches := session.PollRecords(ctx, 1)
		if err := fetches.Err(); err != nil {
			return err
		}
		record := fetches.Records()[0]
		if err := session.Begin(); err != nil {
			return err
		}
		commits := kgo.TryCommit
		if record.Partition == 0 {
			session.Produce(ctx, &kgo.Record{Topic: r.Name, Partition: 1, Key: record.Key, Value: record.Value}, nil)
			if record.Offset%2 == 1 && !aborted[record.Offset] {
				aborted[record.Offset], commits = true, kgo.TryAbort
			} else {
				copied++
			}
		}
		if _, err := session.End(ctx, commits); err != nil {
			return err
		}
	}
	return nil
}

// begun returns a client with a transaction that has one record.
func begun(r *run, timeout time.Duration, n int) (*kgo.Client, error) {
	cl, err := client(r, kgo.TransactionalID(r.Name), kgo.TransactionTimeout(timeout))
	if err != nil {
		return nil, err
	}
	if err := cl.BeginTransaction(); err != nil {
		return nil, err
	}
	return cl, sendRecord(cl, r, n)
}

func sendRecord(cl *kgo.Client, r *run, n int) error {
	record := &kgo.Record{Topic: r.Name, Partition: 0, Key: contract.Key(n), Value: contract.Value(n)}
	return cl.ProduceSync(background, record).FirstErr()
}

func reportCommitted(r *run, result string, partition int32, count int) error {
	start := map[string]map[int32]kgo.Offset{r.Name: {partition: kgo.NewOffset().AtStart()}}
	cl, err := client(r, kgo.ConsumePartitions(start), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer cl.Close()
	records, err := take(cl, count)
	r.Report(result, formatRecords(records))
	return err
}

func fencedProducer(r *run) error {
	first, err := begun(r, time.Minute, 0)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := begun(r, time.Minute, 1)
	if err != nil {
		return err
	}
	defer second.Close()
	if err := reportCode(r, "error", first.EndTransaction(background, kgo.TryCommit)); err != nil {
		return err
	}
	if err := second.EndTransaction(background, kgo.TryCommit); err != nil {
		return err
	}
	return reportCommitted(r, "read", 0, 1)
}

func transactionTimeout(r *run) error {
	cl, err := begun(r, time.Second, 0)
	if err != nil {
		return err
	}
	defer cl.Close()
	plain, err := client(r)
	if err != nil {
		return err
	}
	defer plain.Close()
	if err := sendRecord(plain, r, 1); err != nil {
		return err
	}
	if err := reportCommitted(r, "read", 0, 1); err != nil {
		return err
	}
	return reportCode(r, "error", cl.EndTransaction(background, kgo.TryCommit))
}
