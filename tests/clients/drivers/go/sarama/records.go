package main

import (
	"errors"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
)

// send writes numbered records to the partitions in turn and returns the offsets of each partition.
func send(r *run, count, partitions int, config *sarama.Config) ([][]int64, error) {
	producer, err := sarama.NewSyncProducer(addresses(r), config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, count)
	for n := range messages {
		messages[n] = &sarama.ProducerMessage{
			Topic:     r.Name,
			Partition: int32(n % partitions),
			Key:       sarama.ByteEncoder(contract.Key(n)),
			Value:     sarama.ByteEncoder(contract.Value(n)),
		}
	}
	if err := producer.SendMessages(messages); err != nil {
		return nil, err
	}
	offsets := make([][]int64, partitions)
	for _, message := range messages {
		offsets[message.Partition] = append(offsets[message.Partition], message.Offset)
	}
	return offsets, nil
}

func sendTen(r *run) error {
	_, err := send(r, 10, 1, settings())
	return err
}

// readFrom reads a partition from an offset on, without a group.
func readFrom(r *run, partition int32, offset int64, count int) ([]string, error) {
	return readWith(settings(), r, partition, offset, count)
}

func readWith(config *sarama.Config, r *run, partition int32, offset int64, count int) ([]string, error) {
	consumer, err := sarama.NewConsumer(addresses(r), config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	part, err := consumer.ConsumePartition(r.Name, partition, offset)
	if err != nil {
		return nil, err
	}
	defer part.Close()
	return take(part.Messages(), count)
}

// take returns the next records.
func take(messages <-chan *sarama.ConsumerMessage, count int) ([]string, error) {
	limit := time.After(contract.Limit)
	var found []string
	for len(found) < count {
		select {
		case message, open := <-messages:
			if !open {
				return nil, errors.New("the partition was revoked")
			}
			found = append(found, contract.FormatRecord(message.Key, message.Value))
		case <-limit:
			return nil, contract.ErrTimeout
		}
	}
	return found, nil
}

func produce100(r *run) error {
	offsets, err := send(r, 100, 2, settings())
	if err != nil {
		return err
	}
	r.Report("acknowledged", len(offsets[0])+len(offsets[1]))
	r.Report("last", []int64{slices.Max(offsets[0]), slices.Max(offsets[1])})
	read := make([][]string, 2)
	for p := range read {
		if read[p], err = readFrom(r, int32(p), sarama.OffsetOldest, 50); err != nil {
			return err
		}
	}
	r.Report("read", read)
	return nil
}

func idempotentProduce(r *run) error {
	config := settings()
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	offsets, err := send(r, 100, 1, config)
	if err != nil {
		return err
	}
	r.Report("acknowledged", len(offsets[0]))
	r.Report("last", slices.Max(offsets[0]))
	read, err := readFrom(r, 0, sarama.OffsetOldest, 100)
	r.Report("read", read)
	return err
}

func lag(r *run) error {
	if err := sendTen(r); err != nil {
		return err
	}
	client, err := sarama.NewClient(addresses(r), settings())
	if err != nil {
		return err
	}
	defer client.Close()
	beginning, err := client.GetOffset(r.Name, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	end, err := client.GetOffset(r.Name, 0, sarama.OffsetNewest)
	if err != nil {
		return err
	}
	r.Report("beginning", beginning)
	r.Report("end", end)
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := commit(r, 4); err != nil {
			return err
		}
		found, err := notes(admin, r, 1)
		r.Report("committed", found[0].Offset)
		r.Report("lag", end-found[0].Offset)
		return err
	})
}
