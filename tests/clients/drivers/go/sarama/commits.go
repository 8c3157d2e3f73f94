package main

import (
	"errors"
	"strings"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/telling"
)

// commit offsets for partitions 0, 1 ...
func commit(r *run, offsets ...int64) error {
	notes := make([]telling.Note, len(offsets))
	for partition, offset := range offsets {
		notes[partition].Offset = offset
	}
	return commitNotes(r, notes...)
}

// commitNotes is how a consumer without members commits; it returns the first error that the offset manager tells.
func commitNotes(r *run, notes ...telling.Note) error {
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
		managed[partition].ResetOffset(note.Offset, note.Metadata) // the one takes greater offsets, the other smaller ones
	}
	manager.Commit()
	err = firstError(managed)
	for _, partition := range managed {
		partition.AsyncClose()
	}
	return errors.Join(err, manager.Close())
}

// firstError of what Commit, which waits for the answer, has left.
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

// notes are the committed offsets of the first partitions; what is not committed is left out.
func notes(admin sarama.ClusterAdmin, r *run, partitions int) (map[int32]telling.Note, error) {
	all := map[int32]telling.Note{}
	asked := make([]int32, partitions)
	for partition := range asked {
		asked[partition] = int32(partition)
	}
	found, err := admin.ListConsumerGroupOffsets(r.Name, map[string][]int32{r.Name: asked})
	if err != nil {
		return nil, err
	}
	for _, partition := range asked {
		if block := found.GetBlock(r.Name, partition); block != nil && block.Offset >= 0 {
			all[partition] = telling.Note{Offset: block.Offset, Metadata: block.Metadata}
		}
	}
	return all, nil
}

func tellNotes(admin sarama.ClusterAdmin, r *run, fact string) error {
	found, err := notes(admin, r, len(telling.Notes))
	r.Tell(fact, found)
	return err
}

func commitWithMetadata(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := tellNotes(admin, r, "before"); err != nil {
			return err
		}
		if err := commitNotes(r, telling.Notes...); err != nil {
			return err
		}
		if err := tellNotes(admin, r, "committed"); err != nil {
			return err
		}
		if err := commitNotes(r, telling.Note{Offset: 2, Metadata: "new"}); err != nil {
			return err
		}
		return tellNotes(admin, r, "replaced")
	})
}

func metadataTooLarge(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		largest := strings.Repeat("x", telling.Largest)
		if err := commitNotes(r, telling.Note{Offset: 1, Metadata: largest}); err != nil {
			return err
		}
		if err := tellCode(r, "error", commitNotes(r, telling.Note{Offset: 2, Metadata: largest + "x"})); err != nil {
			return err
		}
		found, err := notes(admin, r, 1)
		r.Tell("committed", found[0].Offset)
		r.Tell("length", len(found[0].Metadata))
		return err
	})
}

func unknownTopic(r *run) error { return tellCode(r, "error", commit(r, 0)) }
