package main

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"kproto/tests/clients/drivers/telling"
)

func createTopic(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if _, err := admin.CreateTopic(background, 3, 1, nil, r.Name); err != nil {
			return err
		}
		partitions := 0
		err := telling.Until("the topic", func() (bool, error) {
			topics, err := admin.ListTopics(background, r.Name)
			partitions = len(topics[r.Name].Partitions)
			return partitions > 0, err
		})
		if err != nil {
			return err
		}
		r.Tell("partitions", partitions)
		_, err = admin.CreateTopic(background, 3, 1, nil, r.Name)
		return tellCode(r, "again", err)
	})
}

// commit offsets for partitions 0, 1 ...
func commit(admin *kadm.Client, r *run, offsets ...int64) error {
	notes := make([]telling.Note, len(offsets))
	for partition, offset := range offsets {
		notes[partition].Offset = offset
	}
	return commitNotes(admin, r, notes...)
}

func commitNotes(admin *kadm.Client, r *run, notes ...telling.Note) error {
	var offsets kadm.Offsets
	for partition, note := range notes {
		offsets.Add(kadm.Offset{
			Topic: r.Name, Partition: int32(partition), At: note.Offset, LeaderEpoch: -1, Metadata: note.Metadata,
		})
	}
	found, err := admin.CommitOffsets(background, r.Name, offsets)
	if err != nil {
		return err
	}
	return found.Error()
}

func notes(admin *kadm.Client, r *run) (map[int32]telling.Note, error) {
	found, err := admin.FetchOffsets(background, r.Name)
	all := map[int32]telling.Note{}
	for partition, offset := range found[r.Name] {
		all[partition] = telling.Note{Offset: offset.At, Metadata: offset.Metadata}
	}
	return all, err
}

func commitWithMetadata(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		steps := []struct {
			fact   string
			commit []telling.Note
		}{{"before", telling.Notes}, {"committed", []telling.Note{{Offset: 2, Metadata: "new"}}}, {"replaced", nil}}
		for _, step := range steps {
			found, err := notes(admin, r)
			if err != nil {
				return err
			}
			r.Tell(step.fact, found)
			if step.commit == nil {
				break
			}
			if err := commitNotes(admin, r, step.commit...); err != nil {
				return err
			}
		}
		return nil
	})
}

func metadataTooLarge(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		largest := strings.Repeat("x", telling.Largest)
		if err := commitNotes(admin, r, telling.Note{Offset: 1, Metadata: largest}); err != nil {
			return err
		}
		if err := tellCode(r, "error", commitNotes(admin, r, telling.Note{Offset: 2, Metadata: largest + "x"})); err != nil {
			return err
		}
		found, err := notes(admin, r)
		r.Tell("committed", found[0].Offset)
		r.Tell("length", len(found[0].Metadata))
		return err
	})
}

func unknownTopic(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error { return tellCode(r, "error", commit(admin, r, 0)) })
}
