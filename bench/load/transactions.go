package main

// Mode transactions: each connection is a producer with a transactional id of its own. A transaction adds the partitions of
// the topic (or the group's offsets), writes one batch to each (or commits one offset of each), and ends. The requests are
// those of clients before Kafka 4.0, one after the other.

import (
	"flag"
	"fmt"
	"hash/crc32"
	"time"
)

var (
	abort       = flag.Bool("abort", false, "mode transactions: abort each transaction")
	offsetsOnly = flag.Bool("offsets", false, "mode transactions: commit offsets instead of records")
	valueBytes  = flag.Int("value", 100, "mode transactions: bytes of the one record of each batch")
)

const (
	apiProduce            = 0
	apiInitProducerID     = 22
	apiAddPartitionsToTxn = 24
	apiAddOffsetsToTxn    = 25
	apiEndTxn             = 26
	apiTxnOffsetCommit    = 28

	concurrentTransactions = 51
	notLeader              = 6 // of a new topic
	transactionTimeoutMs   = 60000
	busyPause              = 100 * time.Microsecond // before a request is repeated, as the last transaction is still ending
	transactionType        = 1                      // of FindCoordinator
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// producer is a transactional producer on one connection.
type producer struct {
	*worker
	corr     int32
	name     string
	group    string
	id       int64
	epoch    int16
	sequence int32 // of the next batch in each partition
	count    int64 // of transactions
}

func (p *producer) header(key, version int16) *enc {
	p.corr++
	return header(key, version, p.corr, false)
}

func (p *producer) call(e *enc) (*dec, error) {
	frame := e.done()
	if _, err := p.Write(frame); err != nil {
		return nil, err
	}
	frames, err := p.read()
	if err != nil {
		return nil, err
	}
	if len(frames) != 1 || be.Uint32(frames[0]) != be.Uint32(frame[8:]) {
		return nil, fmt.Errorf("%d responses to a request, or one with another correlation id", len(frames))
	}
	return &dec{b: frames[0][4:]}, nil
}

// own starts a request with the transactional id, and with id and epoch behind it.
func (p *producer) own(key, version int16) *enc {
	e := p.header(key, version)
	e.str(p.name)
	p.identity(e)
	return e
}

func (p *producer) identity(e *enc) {
	e.i64(p.id)
	e.i16(p.epoch)
}

// again calls until the coordinator is no longer busy with the last transaction, or not yet there.
func again(call func() (int16, error), what string) error {
	for end := time.Now().Add(time.Duration(*wait * 1e9)); ; time.Sleep(busyPause) {
		code, err := call()
		if err != nil || code == 0 {
			return err
		}
		failed := kerr{code, what}
		if code != concurrentTransactions && code != notLeader && !retriable(failed) || time.Now().After(end) {
			return failed
		}
	}
}

// begin gets the producer id, once the coordinator is there.
func (p *producer) begin() error {
	return again(func() (int16, error) {
		find := p.header(apiFindCoordinator, 1)
		find.str(p.name)
		find.i8(transactionType)
		if _, err := p.call(find); err != nil {
			return 0, err
		}
		e := p.header(apiInitProducerID, 1)
		e.str(p.name)
		e.i32(transactionTimeoutMs)
		d, err := p.call(e)
		if err != nil {
			return 0, err
		}
		d.i32() // throttle
		code := d.i16()
		p.id, p.epoch = d.i64(), d.i16()
		return code, d.err
	}, "begin")
}

func (p *producer) addPartitions() (int16, error) {
	e := p.own(apiAddPartitionsToTxn, 1)
	e.arr(1)
	e.str(p.topicName(0))
	e.arr(p.parts)
	for n := range p.parts {
		e.i32(int32(n))
	}
	return p.codes(e)
}

func (p *producer) addOffsets() (int16, error) {
	e := p.own(apiAddOffsetsToTxn, 1)
	e.str(p.group)
	return p.code(e)
}

func (p *producer) commitOffsets() (int16, error) {
	e := p.header(apiTxnOffsetCommit, 2)
	e.str(p.name)
	e.str(p.group)
	p.identity(e)
	e.arr(1)
	e.str(p.topicName(0))
	e.arr(p.parts)
	for n := range p.parts {
		e.i32(int32(n))
		e.i64(p.count)
		e.i32(-1) // leader epoch
		e.str("")
	}
	return p.codes(e)
}

// produce writes a batch to each partition.
func (p *producer) produce() (int16, error) {
	e := p.header(apiProduce, 7)
	e.str(p.name)
	e.i16(-1) // acks
	e.i32(30000)
	e.arr(1)
	e.str(p.topicName(0))
	e.arr(p.parts)
	batch := p.batch()
	for n := range p.parts {
		e.i32(int32(n))
		e.bytes(batch)
	}
	p.sequence++
	d, err := p.call(e)
	if err != nil {
		return 0, err
	}
	for n := d.arr(); n > 0 && d.err == nil; n-- {
		d.str()
		for m := d.arr(); m > 0 && d.err == nil; m-- {
			d.i32()
			if code := d.i16(); code != 0 {
				return code, nil
			}
			d.take(24) // base offset, append time, start of the log
		}
	}
	return 0, d.err
}

// batch is a record batch with one record.
func (p *producer) batch() []byte {
	const afterSize, crcAt, afterCrc = 12, 17, 21
	value := make([]byte, *valueBytes)
	record := &enc{}
	record.i8(0)
	record.b = append(record.b, 0, 0, 1) // timestamp and offset delta 0, no key
	record.uvar(uint64(2 * len(value)))
	record.b = append(append(record.b, value...), 0)
	e := &enc{}
	e.i64(0)
	e.i32(0)  // size
	e.i32(-1) // leader epoch
	e.i8(2)
	e.i32(0)    // checksum
	e.i16(0x10) // transactional
	e.i32(0)
	now := time.Now().UnixMilli()
	e.i64(now)
	e.i64(now)
	p.identity(e)
	e.i32(p.sequence)
	e.i32(1)
	e.uvar(uint64(2 * len(record.b)))
	e.b = append(e.b, record.b...)
	be.PutUint32(e.b[8:], uint32(len(e.b)-afterSize))
	be.PutUint32(e.b[crcAt:], crc32.Checksum(e.b[afterCrc:], castagnoli))
	return e.b
}

func (p *producer) end() (int16, error) {
	e := p.own(apiEndTxn, 1)
	commits := int8(1)
	if *abort {
		commits = 0
	}
	e.i8(commits)
	return p.code(e)
}

// code returns the error of a response that has one after the throttle time.
func (p *producer) code(e *enc) (int16, error) {
	d, err := p.call(e)
	if err != nil {
		return 0, err
	}
	d.i32()
	code := d.i16()
	return code, d.err
}

// codes returns the first error of a response with errors by partition after the throttle time.
func (p *producer) codes(e *enc) (int16, error) {
	d, err := p.call(e)
	if err != nil {
		return 0, err
	}
	d.i32()
	for n := d.arr(); n > 0 && d.err == nil; n-- {
		d.str()
		for m := d.arr(); m > 0 && d.err == nil; m-- {
			d.i32()
			if code := d.i16(); code != 0 {
				return code, nil
			}
		}
	}
	return 0, d.err
}

// transaction runs one transaction.
func (p *producer) transaction() error {
	p.count++
	add, write := p.addPartitions, p.produce
	if *offsetsOnly {
		add, write = p.addOffsets, p.commitOffsets
	}
	for _, step := range []struct {
		what string
		call func() (int16, error)
	}{{"add", add}, {"write", write}, {"end", p.end}} {
		if err := again(step.call, step.what); err != nil {
			return err
		}
	}
	return nil
}

// transactions runs one transaction after the other.
func (w *worker) transactions() error {
	w.in = make([]byte, 16<<10)
	w.SetDeadline(time.Now().Add(time.Duration((*warmup + *duration + 2**wait) * 1e9)))
	p := &producer{worker: w, name: w.groupName(w.groups[0]) + "-id", group: w.groupName(w.groups[0])}
	if err := p.begin(); err != nil {
		return err
	}
	for !w.stop.Load() && w.left.Add(-1) >= 0 {
		began := int64(time.Since(w.start))
		if err := p.transaction(); err != nil {
			return err
		}
		if now := int64(time.Since(w.start)); now >= w.from.Load() {
			w.hist.add(now - began)
			w.done.Add(1)
		}
	}
	return nil
}
