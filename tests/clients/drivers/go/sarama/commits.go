package main

import (
	"errors"
	"strings"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
)

// commit offsets for partitions 0, 1 ...
func commit(r *run, offsets ...int64) error {
	notes := make([]contract.Note, len(offsets))
	for partition, offset := range offsets {
		notes[partition].Offset = offset
	}
	return commitNotes(r, notes...)
}

// commitNotes commits without a membership; it returns the first error of the offset manager.
func commitNotes(r *run, notes ...contract.Note) error {
	client, err := sarama.NewClient(addresses(r), settings())
	if err != nil {
		return err
	}
	defer client.Close()
	manager, err := sarama.NewOffsetManagerFromClient(r.Name, client)
	if err != nil {
		return err
	}
	managed := make([]sarama.PartitionOffsetManager, len(notes))
	for partition, note := range notes {
		if managed[partition], err = manager.ManagePartition(r.Name, int32(partition)); err != nil {
			return errors.Join(err, manager.Close())
		}
		managed[partition].MarkOffset(note.Offset, note.Metadata)
		managed[partition].ResetOffset(note.Offset, note.Metadata) // MarkOffset accepts larger offsets only, ResetOffset smaller ones only
	}
	manager.Commit()
	err = firstError(managed)
	for _, partition := range managed {
		partition.AsyncClose()
	}
	return errors.Join(err, manager.Close())
}

// firstError returns the first error that Commit, which waits for the response, has left.
func firstError(managed []sarama.PartitionOffsetManager) error {
	for _, partition := range managed {
		select {
		case failed := <-partition.Errors():
			return failed.Err
		default:
		}
	}
	return nil
}

// notes returns the committed offsets of the first partitions that have one.
func notes(admin sarama.ClusterAdmin, r *run, partitions int) (map[int32]contract.Note, error) {
	all := map[int32]contract.Note{}
	numbers := make([]int32, partitions)
	for partition := range numbers {
		numbers[partition] = int32(partition)
	}
	found, err := admin.ListConsumerGroupOffsets(r.Name, map[string][]int32{r.Name: numbers})
	if err != nil {
		return nil, err
	}
	for _, partition := range numbers {
		if block := found.GetBlock(r.Name, partition); block != nil && block.Offset >= 0 {
			all[partition] = contract.Note{Offset: block.Offset, Metadata: block.Metadata}
		}
	}
	return all, nil
}

func reportNotes(admin sarama.ClusterAdmin, r *run, result string) error {
	found, err := notes(admin, r, len(contract.Notes))
	r.Report(result, found)
	return err
}

func commitWithMetadata(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := reportNotes(admin, r, "before"); err != nil {
			return err
		}
		if err := commitNotes(r, contract.Notes...); err != nil {
			return err
		}
		if err := reportNotes(admin, r, "committed"); err != nil {
			return err
		}
		if err := commitNotes(r, contract.Note{Offset: 2, Metadata: "new"}); err != nil {
			return err
		}
		return reportNotes(admin, r, "replaced")
	})
}

func metadataTooLarge(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		largest := strings.Repeat("x", contract.MetadataMaxBytes)
		if err := commitNotes(r, contract.Note{Offset: 1, Metadata: largest}); err != nil {
			return err
		}
		if err := reportCode(r, "error", commitNotes(r, contract.Note{Offset: 2, Metadata: largest + "x"})); err != nil {
			return err
		}
		found, err := notes(admin, r, 1)
		r.Report("committed", found[0].Offset)
		r.Report("length", len(found[0].Metadata))
		return err
	})
}

func unknownTopic(r *run) error { return reportCode(r, "error", commit(r, 0)) }
