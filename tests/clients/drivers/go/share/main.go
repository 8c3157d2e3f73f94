// Two members of a share group with franz-go: BOOTSTRAP. As tests/share_groups/java/ShareClient.java: the first member
// releases records with an odd number at their first delivery and rejects the last one; prints how often each record was
// delivered when it was done with, and what the second member gets of the records that the first one has acquired when it
// closes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic  = "t"
	count  = 10
	pause  = 500 * time.Millisecond
	limit  = 30 * time.Second
	begin  = "begin"
	second = "last"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func member(bootstrap string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ShareGroup("g"), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(pause))
}

// poll returns the records of one poll, which may have none.
func poll(cl *kgo.Client) ([]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), pause)
	defer cancel()
	fetches := cl.PollRecords(ctx, count)
	if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return fetches.Records(), nil
}

func run(bootstrap string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.AllowAutoTopicCreation())
	if err != nil {
		return err
	}
	defer producer.Close()
	send := func(value string) error {
		return producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr()
	}
	if err := send(begin); err != nil {
		return err
	}
	first, err := member(bootstrap)
	if err != nil {
		return err
	}
	for begun := false; !begun; {
		if err := send(begin); err != nil {
			return err
		}
		records, err := poll(first)
		if err != nil {
			return err
		}
		begun = len(records) > 0
	}
	for n := range count {
		if err := send(strconv.Itoa(n)); err != nil {
			return err
		}
	}
	done, err := readAll(ctx, first)
	if err != nil {
		return err
	}
	if err := send(second); err != nil {
		return err
	}
	for acquired := 0; acquired == 0 && ctx.Err() == nil; {
		records, err := poll(first)
		if err != nil {
			return err
		}
		acquired = len(records)
	}
	got, err := takeOver(ctx, bootstrap, first)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"done": done, "second": got})
}

// readAll acknowledges records until all are done with; it returns how often each was delivered.
func readAll(ctx context.Context, first *kgo.Client) (map[string]int32, error) {
	done := map[string]int32{}
	for len(done) < count {
		records, err := poll(first)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, fmt.Errorf("%d records: %w", len(done), err)
		}
		for _, record := range records {
			acknowledge(record, done)
		}
		if err := first.FlushAcks(ctx); err != nil {
			return nil, err
		}
	}
	return done, nil
}

func acknowledge(record *kgo.Record, done map[string]int32) {
	value := string(record.Value)
	number, err := strconv.Atoi(value)
	switch {
	case err != nil:
		record.Ack(kgo.AckAccept)
		return
	case number%2 == 1 && record.DeliveryCount() == 1:
		record.Ack(kgo.AckRelease)
		return
	case number == count-2:
		record.Ack(kgo.AckReject)
	default:
		record.Ack(kgo.AckAccept)
	}
	done[value] = record.DeliveryCount()
}

// takeOver closes the first member; it returns what the second one gets.
func takeOver(ctx context.Context, bootstrap string, first *kgo.Client) (map[string]int32, error) {
	other, err := member(bootstrap)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	if _, err := poll(other); err != nil {
		return nil, err
	}
	first.Close()
	got := map[string]int32{}
	for len(got) == 0 && ctx.Err() == nil {
		records, err := poll(other)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			got[string(record.Value)] = record.DeliveryCount()
			record.Ack(kgo.AckAccept)
		}
	}
	return got, ctx.Err()
}
