package main

// Mode rebalance: how long one group takes until all of its members have their assignment. Classic protocol, each member a
// connection and a goroutine of its own. Heartbeats come as soon as there is something to hear from them, so what is measured
// is the coordinator, not the interval at which real clients ask.

import (
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	apiJoinGroup  = 11
	apiHeartbeat  = 12
	apiLeaveGroup = 13
	apiSyncGroup  = 14

	joinVersion, beatVersion, leaveVersion, syncVersion = 5, 3, 1, 3

	rebalanceInProgress = 27
	memberIDRequired    = 79

	sessionMs, rebalanceMs = 60000, 120000
	beatPause              = time.Millisecond // between two heartbeats of one member that waits for a rebalance
)

// measuredGroup is one group, with the member count of each generation as its leader received it.
type measuredGroup struct {
	group string
	topic string
	sizes sync.Map // generation -> members
	start time.Time
	last  atomic.Int64 // when the last member so far got its assignment, nanoseconds since start
}

type member struct {
	net.Conn
	*measuredGroup
	corr       int32
	id         string
	generation int32
	leader     bool
	others     []string // of the leader: all members of its generation
}

func (m *member) call(e *enc) (*dec, error) {
	b, err := ask(m.Conn, e.done())
	if err != nil {
		return nil, err
	}
	return &dec{b: b[4:]}, nil
}

func (m *member) header(key, version int16) *enc {
	m.corr++
	e := header(key, version, m.corr, false)
	e.str(m.group)
	return e
}

func (e *enc) bytes(b []byte) {
	e.i32(int32(len(b)))
	e.b = append(e.b, b...)
}

// subscription and assignment are the consumer protocol's, version 0.
func subscription(topic string) []byte {
	e := &enc{}
	e.i16(0)
	e.arr(1)
	e.str(topic)
	e.i32(-1)
	return e.b
}

func assignment(topic string, partition int) []byte {
	e := &enc{}
	e.i16(0)
	e.arr(1)
	e.str(topic)
	e.arr(1)
	e.i32(int32(partition))
	e.i32(-1)
	return e.b
}

// getID asks for a member id, with which the next join is a real one.
func (m *member) getID() error {
	m.id = ""
	code, err := m.joinOnce()
	if err == nil && code != memberIDRequired {
		err = kerr{code, "first join, where a member id was due"}
	}
	return err
}

func (m *member) joinOnce() (int16, error) {
	e := m.header(apiJoinGroup, joinVersion)
	e.i32(sessionMs)
	e.i32(rebalanceMs)
	e.str(m.id)
	e.null()
	e.str("consumer")
	e.arr(1)
	e.str("range")
	e.bytes(subscription(m.topic))
	d, err := m.call(e)
	if err != nil {
		return 0, err
	}
	d.i32() // throttle
	code := d.i16()
	m.generation = d.i32()
	d.str() // protocol
	leader := d.str()
	m.id = d.str()
	m.leader = m.id == leader
	m.others = nil
	for n := d.arr(); n > 0 && d.err == nil; n-- {
		m.others = append(m.others, d.str())
		d.str()
		d.take(int(d.i32()))
	}
	return code, d.err
}

// syncOnce requests the assignment; the leader sends all members' assignments.
func (m *member) syncOnce() (int16, error) {
	e := m.header(apiSyncGroup, syncVersion)
	e.i32(m.generation)
	e.str(m.id)
	e.null()
	if m.leader {
		m.sizes.Store(m.generation, len(m.others))
	}
	e.arr(len(m.others))
	for i, id := range m.others {
		e.str(id)
		e.bytes(assignment(m.topic, i))
	}
	d, err := m.call(e)
	if err != nil {
		return 0, err
	}
	d.i32()
	code := d.i16()
	if got := d.take(int(d.i32())); code == 0 && d.err == nil && len(got) == 0 {
		d.err = errors.New("an empty assignment")
	}
	return code, d.err
}

func (m *member) beat() (int16, error) {
	e := m.header(apiHeartbeat, beatVersion)
	e.i32(m.generation)
	e.str(m.id)
	e.null()
	d, err := m.call(e)
	if err != nil {
		return 0, err
	}
	d.i32()
	return d.i16(), d.err
}

func (m *member) leave() error {
	e := m.header(apiLeaveGroup, leaveVersion)
	e.str(m.id)
	d, err := m.call(e)
	if err != nil {
		return err
	}
	d.i32()
	if code := d.i16(); code != 0 {
		return kerr{code, "leave"}
	}
	return d.err
}

// beatUntilRebalance returns once a heartbeat has REBALANCE_IN_PROGRESS.
func (m *member) beatUntilRebalance() error {
	for {
		switch code, err := m.beat(); {
		case err != nil:
			return err
		case code == rebalanceInProgress:
			return nil
		case code != 0:
			return kerr{code, "heartbeat"}
		}
		time.Sleep(beatPause)
	}
}

// settle joins, again and again, until this member has its assignment in a generation of so many members.
func (m *member) settle(size int) error {
	for {
		code, err := m.joinOnce()
		if err == nil && code == memberIDRequired {
			continue
		}
		if err == nil && code != 0 {
			err = kerr{code, "join"}
		}
		if err != nil {
			return err
		}
		code, err = m.syncOnce()
		if err != nil {
			return err
		}
		if code == rebalanceInProgress {
			continue
		}
		if code != 0 {
			return kerr{code, "sync"}
		}
		if n, _ := m.sizes.Load(m.generation); n == size {
			atomicMaxTime(&m.last, int64(time.Since(m.start)))
			return nil
		}
		if err := m.beatUntilRebalance(); err != nil {
			return err
		}
	}
}

// waitLoaded returns once the group's coordinator is loaded, with a heartbeat of an unknown member.
func (r *run) waitLoaded(m *member) error {
	m.id = "unknown"
	for {
		code, err := m.beat()
		if err != nil || !retriable(kerr{code, ""}) {
			return err
		}
		if time.Now().After(r.patience()) {
			return kerr{code, "heartbeat of an unknown member"}
		}
		time.Sleep(time.Millisecond)
	}
}

// addrOf is the coordinator of the only group.
func addrOf(owned map[string][]int) string {
	for addr := range owned {
		return addr
	}
	return ""
}

func atomicMaxTime(p *atomic.Int64, v int64) {
	for old := p.Load(); v > old && !p.CompareAndSwap(old, v); old = p.Load() {
	}
}

// all runs something for each of the members at once; the milliseconds from now on until the last of them has settled.
func (g *measuredGroup) all(members []*member, do func(*member) error) (float64, error) {
	g.last.Store(0)
	g.start = time.Now()
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = do(m)
		}()
	}
	wg.Wait()
	return float64(g.last.Load()) / 1e6, errors.Join(errs...)
}

// rebalances measures, for one group: all n members join at once, one more joins, and it leaves again.
func (r *run) rebalances(owner string, n int) (map[string]any, error) {
	conns := make([]net.Conn, n+1)
	for i := range conns {
		c, err := dialWait(owner)
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", i, err)
		}
		defer c.Close()
		conns[i] = c
	}
	g := &measuredGroup{group: r.groupName(0), topic: r.topicName(0)}
	members := make([]*member, n+1)
	for i, c := range conns {
		members[i] = &member{Conn: c, measuredGroup: g}
	}
	first, comer := members[:n], members[n]
	if err := r.waitLoaded(comer); err != nil {
		return nil, err
	}
	begun := make(chan struct{})
	out := map[string]any{"mode": "rebalance", "members": n}
	// Each counts server CPU too, in ticks of 10 ms.
	measure := func(name string, who []*member, do func(*member) error) error {
		before := procs(*pids).cpu
		ms, err := g.all(who, do)
		out[name+"_ms"] = math.Round(ms*1000) / 1000
		out[name+"_cpu_ms"] = math.Round((procs(*pids).cpu - before) * 1000)
		return err
	}
	if err := measure("start", first, func(m *member) error { return m.settle(n) }); err != nil {
		return nil, fmt.Errorf("all join: %w", err)
	}
	if err := comer.getID(); err != nil {
		return nil, err
	}
	if err := measure("join", members, func(m *member) error {
		switch m {
		case comer:
		case first[0]:
			err := m.beatUntilRebalance()
			close(begun)
			if err != nil {
				return err
			}
		default: // other members send heartbeats only after the rebalance has begun
			<-begun
			if err := m.beatUntilRebalance(); err != nil {
				return err
			}
		}
		return m.settle(n + 1)
	}); err != nil {
		return nil, fmt.Errorf("one joins: %w", err)
	}
	left := make(chan struct{})
	if err := measure("leave", members, func(m *member) error {
		if m == comer {
			defer close(left)
			return m.leave()
		}
		<-left
		if err := m.beatUntilRebalance(); err != nil {
			return err
		}
		return m.settle(n)
	}); err != nil {
		return nil, fmt.Errorf("one leaves: %w", err)
	}
	for _, m := range first {
		if err := m.leave(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
