package main

// Mode shares: members of one share group read records and acknowledge each batch with the next fetch, as clients do. The
// group reads from the end of the topic, so its members fetch once before the records are written; then the time counts
// until all of them are acquired.

import (
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

var records = flag.Int("records", 100000, "mode shares: records in all partitions together")

const (
	apiShareHeartbeat   = 76
	apiShareFetch       = 78
	apiShareAcknowledge = 79

	batchRecords  = 100 // of each batch in the log
	fetchRecords  = 500 // that a member wants
	shareWaitMs   = 500
	finalEpoch    = -1
	accepted      = 1
	heartbeatWait = 50 * time.Millisecond
)

// shared is a partition of the topic with the offsets that a member has acquired, and not acknowledged.
type shared struct {
	partition int32
	acquired  [][2]int64
}

// sharer is a member of the share group on one connection.
type sharer struct {
	net.Conn
	*shareRun
	corr    int32
	id      string
	epoch   int32
	session int32
	owned   []*shared
	latency hist
}

type shareRun struct {
	group   string
	topic   string
	topicID []byte
	left    atomic.Int64 // records that no member has acquired yet
	ended   atomic.Int64 // when the newest ones were acquired, nanoseconds since the epoch
}

func (m *sharer) header(key, version int16) *enc {
	m.corr++
	return header(key, version, m.corr, true)
}

// call returns the response behind the throttle time, and its error code.
func (m *sharer) call(e *enc) (*dec, int16, error) {
	b, err := ask(m.Conn, e.done())
	if err != nil {
		return nil, 0, err
	}
	d := &dec{b: b[4:], flex: true}
	d.tags()
	d.i32()
	return d, d.i16(), d.err
}

// heartbeat joins if the epoch is 0; it takes the assignment that the response has.
func (m *sharer) heartbeat() error {
	e := m.header(apiShareHeartbeat, 1)
	e.str(m.group)
	e.str(m.id)
	e.i32(m.epoch)
	e.null()
	if m.epoch == 0 {
		e.arr(1)
		e.str(m.topic)
	} else {
		e.null()
	}
	e.tags()
	d, code, err := m.call(e)
	if err != nil || code != 0 {
		return errors.Join(err, codeError(code, "heartbeat"))
	}
	d.str()
	d.str()
	m.epoch = d.i32()
	d.i32()
	if d.i8() < 0 {
		return d.err
	}
	m.owned = nil
	for n := d.arr(); n > 0 && d.err == nil; n-- {
		d.take(16)
		for k := d.arr(); k > 0 && d.err == nil; k-- {
			m.owned = append(m.owned, &shared{partition: d.i32()})
		}
		d.tags()
	}
	return d.err
}

func codeError(code int16, what string) error {
	if code == 0 {
		return nil
	}
	return kerr{code, what}
}

// join sends heartbeats until partitions are assigned.
func (m *sharer) join() error {
	for end := time.Now().Add(time.Duration(*wait * 1e9)); ; time.Sleep(heartbeatWait) {
		err := m.heartbeat()
		if err == nil && len(m.owned) > 0 {
			return nil
		}
		if err != nil && !retriable(err) || time.Now().After(end) {
			return errors.Join(err, fmt.Errorf("member %s has no partition", m.id))
		}
	}
}

// acknowledgements adds what is acquired, and forgets it. The first request of a session has all partitions.
func (m *sharer) acknowledgements(e *enc) {
	named := []*shared{}
	for _, own := range m.owned {
		if m.session == 0 || len(own.acquired) > 0 {
			named = append(named, own)
		}
	}
	if len(named) == 0 {
		e.arr(0)
		return
	}
	e.arr(1)
	e.b = append(e.b, m.topicID...)
	e.arr(len(named))
	for _, own := range named {
		e.i32(own.partition)
		e.arr(len(own.acquired))
		for _, span := range own.acquired {
			e.i64(span[0])
			e.i64(span[1])
			e.arr(1)
			e.i8(accepted)
			e.tags()
		}
		e.tags()
		own.acquired = own.acquired[:0]
	}
	e.tags()
}

// fetch acknowledges what the last one has acquired; it returns how many records this one has.
func (m *sharer) fetch() (int64, error) {
	e := m.header(apiShareFetch, 1)
	e.str(m.group)
	e.str(m.id)
	e.i32(m.session)
	e.i32(shareWaitMs)
	e.i32(1)
	e.i32(math.MaxInt32)
	e.i32(fetchRecords)
	e.i32(fetchRecords)
	m.acknowledgements(e)
	e.arr(0)
	e.tags()
	d, code, err := m.call(e)
	if err != nil || code != 0 {
		return 0, errors.Join(err, codeError(code, "share fetch"))
	}
	m.session++
	d.str()
	d.i32()
	var count int64
	for n := d.arr(); n > 0 && d.err == nil; n-- {
		d.take(16)
		for k := d.arr(); k > 0 && d.err == nil; k-- {
			found, err := m.partition(d)
			if err != nil {
				return 0, err
			}
			count += found
		}
		d.tags()
	}
	return count, d.err
}

// partition reads one partition of a response; it returns how many records are acquired.
func (m *sharer) partition(d *dec) (int64, error) {
	index := d.i32()
	for _, what := range []string{"share fetch of a partition", "acknowledgement"} {
		if code := d.i16(); code != 0 {
			return 0, kerr{code, what}
		}
		d.str()
	}
	d.take(8) // leader
	d.tags()
	d.take(max(0, d.arr())) // records
	var count int64
	for n := d.arr(); n > 0 && d.err == nil; n-- {
		first, last := d.i64(), d.i64()
		d.i16()
		d.tags()
		count += last - first + 1
		for _, own := range m.owned {
			if own.partition == index {
				own.acquired = append(own.acquired, [2]int64{first, last})
			}
		}
	}
	d.tags()
	return count, d.err
}

// finish acknowledges what is left, and closes the session.
func (m *sharer) finish() error {
	e := m.header(apiShareAcknowledge, 1)
	e.str(m.group)
	e.str(m.id)
	e.i32(finalEpoch)
	m.acknowledgements(e)
	e.tags()
	_, code, err := m.call(e)
	return errors.Join(err, codeError(code, "share acknowledge"))
}

// read fetches until the group has all records. Without new ones for -wait seconds it fails.
func (m *sharer) read() error {
	for m.left.Load() > 0 {
		began := time.Now()
		count, err := m.fetch()
		if err != nil {
			return err
		}
		now := time.Now().UnixNano()
		if count > 0 {
			m.latency.add(int64(time.Since(began)))
			m.ended.Store(now)
			m.left.Add(-count)
		} else if left := m.left.Load(); left > 0 && now-m.ended.Load() > int64(*wait*1e9) {
			return fmt.Errorf("the group never gets %d of its records", left)
		}
	}
	return m.finish()
}

// plainBatch is a record batch without producer, of batchRecords records.
func plainBatch() []byte {
	const afterSize, crcAt, afterCrc = 12, 17, 21
	value := make([]byte, *valueBytes)
	e := &enc{}
	e.i64(0)
	e.i32(0)  // size
	e.i32(-1) // leader epoch
	e.i8(2)
	e.i32(0) // checksum
	e.i16(0)
	e.i32(batchRecords - 1)
	now := time.Now().UnixMilli()
	e.i64(now)
	e.i64(now)
	e.i64(-1)
	e.i16(-1)
	e.i32(-1)
	e.i32(batchRecords)
	for n := range batchRecords {
		record := &enc{}
		record.i8(0)
		record.i8(0)               // timestamp delta
		record.uvar(uint64(2 * n)) // offset delta
		record.i8(1)               // no key
		record.uvar(uint64(2 * len(value)))
		record.b = append(append(record.b, value...), 0)
		e.uvar(uint64(2 * len(record.b)))
		e.b = append(e.b, record.b...)
	}
	be.PutUint32(e.b[8:], uint32(len(e.b)-afterSize))
	be.PutUint32(e.b[crcAt:], crc32.Checksum(e.b[afterCrc:], castagnoli))
	return e.b
}

// write produces the records, each partition the same number, and returns how many.
func (r *run) write(c net.Conn) (int64, error) {
	batch, written := plainBatch(), int64(0)
	for corr := int32(0); written < int64(*records); corr++ {
		e := header(apiProduce, 7, corr, false)
		e.i16(-1) // no transactional id
		e.i16(-1) // acks
		e.i32(30000)
		e.arr(1)
		e.str(r.topicName(0))
		e.arr(r.parts)
		for n := range r.parts {
			e.i32(int32(n))
			e.bytes(batch)
			written += batchRecords
		}
		b, err := ask(c, e.done())
		if err != nil {
			return 0, err
		}
		d := &dec{b: b[4:]}
		d.arr()
		d.str()
		for n := d.arr(); n > 0 && d.err == nil; n-- {
			d.i32()
			if code := d.i16(); code != 0 {
				return 0, kerr{code, "produce"}
			}
			d.take(24)
		}
	}
	return written, nil
}

// topicID asks for the id of the topic.
func (r *run) topicID(c net.Conn) ([]byte, error) {
	e := header(apiMetadata, 12, 1, true)
	e.arr(1)
	e.b = append(e.b, make([]byte, 16)...)
	e.str(r.topicName(0))
	e.tags()
	e.i8(0)
	e.i8(0)
	e.tags()
	b, err := ask(c, e.done())
	if err != nil {
		return nil, err
	}
	d := &dec{b: b[4:], flex: true}
	d.tags()
	d.i32()
	for n := d.arr(); n > 0 && d.err == nil; n-- {
		d.i32()
		d.str()
		d.i32()
		d.str()
		d.tags()
	}
	d.str()
	d.i32()
	d.arr()
	code := d.i16()
	d.str()
	id := d.take(16)
	return id, errors.Join(d.err, codeError(code, "metadata"))
}

// shares measures one share group.
func (r *run) shares(boot net.Conn, addr string, members int) (map[string]any, error) {
	id, err := r.topicID(boot)
	if err != nil {
		return nil, err
	}
	group := &shareRun{group: r.groupName(0), topic: r.topicName(0), topicID: id}
	all := make([]*sharer, members)
	for n := range all {
		c, err := dialWait(addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		all[n] = &sharer{Conn: c, shareRun: group, id: fmt.Sprintf("member-%d", n)}
	}
	each := func(do func(*sharer) error) error {
		errs := make([]error, members)
		var wg sync.WaitGroup
		for n, m := range all {
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs[n] = do(m)
			}()
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	if err := each((*sharer).join); err != nil {
		return nil, err
	}
	if err := each(func(m *sharer) error { _, err := m.fetch(); return err }); err != nil {
		return nil, err
	}
	written, err := r.write(boot)
	if err != nil {
		return nil, err
	}
	group.left.Store(written)
	before, began := procs(*pids), time.Now()
	group.ended.Store(began.UnixNano())
	if err := each((*sharer).read); err != nil {
		return nil, err
	}
	seconds, after := float64(group.ended.Load()-began.UnixNano())/1e9, procs(*pids)
	h := &hist{}
	for _, m := range all {
		h.merge(&m.latency)
	}
	if err := each(func(m *sharer) error { m.epoch = -1; return m.heartbeat() }); err != nil {
		return nil, err
	}
	return map[string]any{"mode": "shares", "members": members, "parts": r.parts, "records": written, "seconds": seconds,
		"records_s": float64(written) / seconds, "p50_us": h.us(.5), "p99_us": h.us(.99),
		"server_cpu_us_per_record": (after.cpu - before.cpu) * 1e6 / float64(written)}, nil
}
