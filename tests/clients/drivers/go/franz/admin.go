package main

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"kproto/tests/clients/drivers/contract"
)

func createTopic(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		if _, err := admin.CreateTopic(background, 3, 1, nil, r.Name); err != nil {
			return err
		}
		partitions := 0
		err := contract.WaitUntil("the topic", func() (bool, error) {
			topics, err := admin.ListTopics(background, r.Name)
			partitions = len(topics[r.Name].Partitions)
			return partitions > 0, err
		})
		if err != nil {
			return err
		}
		r.Report("partitions", partitions)
		_, err = admin.CreateTopic(background, 3, 1, nil, r.Name)
		return reportCode(r, "again", err)
	})
}

// commit offsets for partitions 0, 1 ...
func commit(admin *kadm.Client, r *run, offsets ...int64) error {
	notes := make([]contract.Note, len(offsets))
	for partition, offset := range offsets {
		notes[partition].Offset = offset
	}
	return commitNotes(admin, r, notes...)
}

func commitNotes(admin *kadm.Client, r *run, notes ...contract.Note) error {
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

func notes(admin *kadm.Client, r *run) (map[int32]contract.Note, error) {
	found, err := admin.FetchOffsets(background, r.Name)
	all := map[int32]contract.Note{}
	for partition, offset := range found[r.Name] {
		all[partition] = contract.Note{Offset: offset.At, Metadata: offset.Metadata}
	}
	return all, err
}

func commitWithMetadata(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error {
		steps := []struct {
			result string
			commit []contract.Note
		}{{"before", contract.Notes}, {"committed", []contract.Note{{Offset: 2, Metadata: "new"}}}, {"replaced", nil}}
		for _, step := range steps {
			found, err := notes(admin, r)
			if err != nil {
				return err
			}
			r.Report(step.result, found)
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
		largest := strings.Repeat("x", contract.MetadataMaxBytes)
		if err := commitNotes(admin, r, contract.Note{Offset: 1, Metadata: largest}); err != nil {
			return err
		}
		if err := reportCode(r, "error", commitNotes(admin, r, contract.Note{Offset: 2, Metadata: largest + "x"})); err != nil {
			return err
		}
		found, err := notes(admin, r)
		r.Report("committed", found[0].Offset)
		r.Report("length", len(found[0].Metadata))
		return err
	})
}

func unknownTopic(r *run) error {
	return withAdmin(r, func(admin *kadm.Client) error { return reportCode(r, "error", commit(admin, r, 0)) })
}
