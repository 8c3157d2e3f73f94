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
	r.Report("acknowledged", len(offsets[0])+len(offsets[1]))
	r.Report("last", []int64{slices.Max(offsets[0]), slices.Max(offsets[1])})
	records, err := readAll(r, 100)
	if err != nil {
		return err
	}
	read := make([][]string, 2)
	for p := range read {
		others := func(record *kgo.Record) bool { return record.Partition != int32(p) }
		read[p] = formatRecords(slices.DeleteFunc(slices.Clone(records), others))
	}
	r.Report("read", read)
	return nil
}

func idempotentProduce(r *run) error {
	offsets, err := send(r, 100, 1)
	if err != nil {
		return err
	}
	r.Report("acknowledged", len(offsets[0]))
	r.Report("last", slices.Max(offsets[0]))
	records, err := readAll(r, 100)
	r.Report("read", formatRecords(records))
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
			read, committed = append(read, formatRecords(records)...), append(committed, offset)
		}
		r.Report("read", read)
		r.Report("committed", committed)
		return nil
	})
}

// committedOffset returns the broker's committed offset of partition 0.
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
		r.Report("first", formatRecords(records))
		return cl.CommitRecords(background, records...)
	})
	if err != nil {
		return err
	}
	return withMember(r, func(cl *kgo.Client) error {
		records, err := take(cl, 6)
		r.Report("second", formatRecords(records))
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
			r.Report("after_commit", formatRecords(records)[0])
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
	r.Report("after_seek", formatRecords(records)[0])
	if err := cl.CommitRecords(background, &kgo.Record{Topic: r.Name, Offset: 1, LeaderEpoch: -1}); err != nil {
		return err
	}
	committed, err := committedOffset(cl, r)
	r.Report("committed", committed)
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
		r.Report("beginning", starts[r.Name][0].Offset)
		r.Report("end", found.End.Offset)
		r.Report("committed", found.Commit.At)
		r.Report("lag", found.Lag)
		return nil
	})
}
