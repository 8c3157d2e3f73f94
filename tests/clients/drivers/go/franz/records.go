package main

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func produce100(r *run) error {
	offsets, err := send(r, 100, 2, kgo.DisableIdempotentWrite())
	if err != nil {
		return err
	}
	r.Tell("acknowledged", len(offsets[0])+len(offsets[1]))
	r.Tell("last", []int64{slices.Max(offsets[0]), slices.Max(offsets[1])})
	records, err := readAll(r, 100)
	if err != nil {
		return err
	}
	read := make([][]string, 2)
	for p := range read {
		others := func(record *kgo.Record) bool { return record.Partition != int32(p) }
		read[p] = shown(slices.DeleteFunc(slices.Clone(records), others))
	}
	r.Tell("read", read)
	return nil
}

func idempotentProduce(r *run) error {
	offsets, err := send(r, 100, 1)
	if err != nil {
		return err
	}
	r.Tell("acknowledged", len(offsets[0]))
	r.Tell("last", slices.Max(offsets[0]))
	records, err := readAll(r, 100)
	r.Tell("read", shown(records))
	return err
}

// readAll reads the topic without a group.
func readAll(r *run, count int) ([]*kgo.Record, error) {
	cl, err := client(r, kgo.ConsumeTopics(r.Name))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return take(cl, count)
}

func consumeAndCommit(r *run) error {
	if err := sendTen(r); err != nil {
		return err
	}
	return withMember(r, func(cl *kgo.Client) error {
		var read []string
		var committed []int64
		for range 2 {
			records, err := take(cl, 5)
			if err != nil {
				return err
			}
			if err := cl.CommitRecords(background, records...); err != nil {
				return err
			}
			offset, err := committedOffset(cl, r)
			if err != nil {
				return err
			}
			read, committed = append(read, shown(records)...), append(committed, offset)
		}
		r.Tell("read", read)
		r.Tell("committed", committed)
		return nil
	})
}

// committedOffset asks the broker what is committed for partition 0.
func committedOffset(cl *kgo.Client, r *run) (int64, error) {
	found, err := kadm.NewClient(cl).FetchOffsets(background, r.Name)
	return found[r.Name][0].At, err
}

func restartAndContinue(r *run) error {
	if err := sendTen(r); err != nil {
		return err
	}
	err := withMember(r, func(cl *kgo.Client) error {
		records, err := take(cl, 4)
		if err != nil {
			return err
		}
		r.Tell("first", shown(records))
		return cl.CommitRecords(background, records...)
	})
	if err != nil {
		return err
	}
	return withMember(r, func(cl *kgo.Client) error {
		records, err := take(cl, 6)
		r.Tell("second", shown(records))
		return err
	})
}

func rewind(r *run) error {
	if err := sendTen(r); err != nil {
		return err
	}
	if err := withMember(r, func(cl *kgo.Client) error { return goBack(cl, r) }); err != nil {
		return err
	}
	return withMember(r, func(cl *kgo.Client) error {
		records, err := take(cl, 1)
		if err == nil {
			r.Tell("after_commit", shown(records)[0])
		}
		return err
	})
}

func goBack(cl *kgo.Client, r *run) error {
	records, err := take(cl, 10)
	if err != nil {
		return err
	}
	if err := cl.CommitRecords(background, records...); err != nil {
		return err
	}
	cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{r.Name: {0: {Epoch: -1, Offset: 3}}})
	if records, err = take(cl, 1); err != nil {
		return err
	}
	r.Tell("after_seek", shown(records)[0])
	if err := cl.CommitRecords(background, &kgo.Record{Topic: r.Name, Offset: 1, LeaderEpoch: -1}); err != nil {
		return err
	}
	committed, err := committedOffset(cl, r)
	r.Tell("committed", committed)
	return err
}

func lag(r *run) error {
	if err := sendTen(r); err != nil {
		return err
	}
	return withAdmin(r, func(admin *kadm.Client) error {
		if err := commit(admin, r, 4); err != nil {
			return err
		}
		starts, err := admin.ListStartOffsets(background, r.Name)
		if err != nil {
			return err
		}
		lags, err := admin.Lag(background, r.Name)
		if err != nil {
			return err
		}
		found := lags[r.Name].Lag[r.Name][0]
		r.Tell("beginning", starts[r.Name][0].Offset)
		r.Tell("end", found.End.Offset)
		r.Tell("committed", found.Commit.At)
		r.Tell("lag", found.Lag)
		return nil
	})
}
