// The scenarios with sarama: BOOTSTRAP PREFIX SCENARIO...
package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
)

type run = contract.Run

var background = context.Background()

func main() {
	contract.Main(map[string]contract.Scenario{
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
	})
}

// settings for the newest release that sarama knows; it negotiates versions with older brokers.
func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Metadata.RefreshFrequency = 500 * time.Millisecond
	config.Metadata.AllowAutoTopicCreation = false
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.MaxWaitTime = 50 * time.Millisecond
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	secure(config)
	return config
}

func addresses(r *run) []string { return []string{r.Bootstrap} }

func withAdmin(r *run, work func(sarama.ClusterAdmin) error) error {
	admin, err := sarama.NewClusterAdmin(addresses(r), settings())
	if err != nil {
		return err
	}
	return errors.Join(work(admin), admin.Close())
}

// reportCode reports the Kafka error code; it returns an error that has none.
func reportCode(r *run, result string, failed error) error {
	var known sarama.KError
	if failed != nil && !errors.As(failed, &known) {
		return failed
	}
	r.Report(result, int16(known))
	return nil
}
