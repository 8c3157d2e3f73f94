// The scenarios with franz-go: BOOTSTRAP PREFIX SCENARIO... With GROUP_PROTOCOL=consumer its members use the consumer
// protocol (KIP-848).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"kproto/tests/clients/drivers/contract"
)

type run = contract.Run

var background = context.Background()

var speaksConsumerProtocol = os.Getenv("GROUP_PROTOCOL") == "consumer"

func main() {
	scenarios := map[string]contract.Scenario{
		"create-topic":         createTopic,
		"produce-100":          produce100,
		"idempotent-produce":   idempotentProduce,
		"consume-and-commit":   consumeAndCommit,
		"restart-and-continue": restartAndContinue,
		"rewind":               rewind,
		"lag":                  lag,
		"two-members":          contract.TwoMembers(scenarioMember),
		"static-member":        contract.StaticMember(scenarioMember),
		"cooperative":          contract.Cooperative(scenarioMember),
		"commit-with-metadata": commitWithMetadata,
		"metadata-too-large":   metadataTooLarge,
		"unknown-topic":        unknownTopic,
		"list-groups":          listGroups,
		"describe-group":       describeGroup,
		"delete-group":         deleteGroup,
		"list-group-offsets":   listGroupOffsets,
		"delete-offsets":       deleteOffsets,
		"exactly-once":         exactlyOnce,
		"fenced-producer":      fencedProducer,
		"transaction-timeout":  transactionTimeout,
	}
	if speaksConsumerProtocol {
		delete(scenarios, "static-member")
	}
	contract.Main(scenarios)
}

func client(r *run, more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(append(secured(r),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(50*time.Millisecond),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.MetadataMaxAge(500*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	), more...)...)
}

// member is a client in the group; later settings override earlier ones.
func member(r *run, more ...kgo.Opt) (*kgo.Client, error) {
	if speaksConsumerProtocol {
		more = append(more, kgo.ServerSideBalancer())
	}
	return client(r, append([]kgo.Opt{
		kgo.ConsumerGroup(r.Name),
		kgo.ConsumeTopics(r.Name),
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(100 * time.Millisecond),
		kgo.DisableAutoCommit(),
	}, more...)...)
}

// withAdmin runs the work with a new admin client.
func withAdmin(r *run, work func(*kadm.Client) error) error {
	cl, err := client(r)
	if err != nil {
		return err
	}
	defer cl.Close()
	return work(kadm.NewClient(cl))
}

// withMember runs the work with a new member of the group.
func withMember(r *run, work func(*kgo.Client) error) error {
	cl, err := member(r)
	if err != nil {
		return err
	}
	defer cl.Close()
	return work(cl)
}

// code returns the Kafka error code of an error.
func code(err error) (int16, error) {
	var known *kerr.Error
	if err == nil {
		return 0, nil
	}
	if errors.As(err, &known) {
		return known.Code, nil
	}
	return 0, err
}

// reportCode reports the Kafka error code; it returns an error that has none.
func reportCode(r *run, result string, failed error) error {
	number, err := code(failed)
	if err == nil {
		r.Report(result, number)
	}
	return err
}

// send writes numbered records to the partitions in turn and returns the offsets of each partition.
func send(r *run, count, partitions int, more ...kgo.Opt) ([][]int64, error) {
	cl, err := client(r, append([]kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks())}, more...)...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	records := make([]*kgo.Record, count)
	for n := range records {
		partition := int32(n % partitions)
		records[n] = &kgo.Record{Topic: r.Name, Partition: partition, Key: contract.Key(n), Value: contract.Value(n)}
	}
	offsets := make([][]int64, partitions)
	for _, result := range cl.ProduceSync(background, records...) {
		if result.Err != nil {
			return nil, result.Err
		}
		offsets[result.Record.Partition] = append(offsets[result.Record.Partition], result.Record.Offset)
	}
	return offsets, nil
}

func sendTen(r *run) error {
	_, err := send(r, 10, 1, kgo.DisableIdempotentWrite())
	return err
}

// take returns the next records.
func take(cl *kgo.Client, count int) ([]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(background, contract.Limit)
	defer cancel()
	var found []*kgo.Record
	for len(found) < count {
		fetches := cl.PollRecords(ctx, count-len(found))
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d records, not %d: %w", len(found), count, err)
		}
		found = append(found, fetches.Records()...)
	}
	return found, nil
}

func formatRecords(records []*kgo.Record) []string {
	all := make([]string, len(records))
	for i, record := range records {
		all[i] = contract.FormatRecord(record.Key, record.Value)
	}
	return all
}
