package main

// Mode consumer-rebalance: how long one group of the consumer protocol (KIP-848) takes until each member has partitions
// and each partition has a member. Each member is a connection and a goroutine of its own. It sends heartbeats as long as
// partitions are missing, and gives up and takes over partitions as soon as a response says so.

import (
	"fmt"
	"math"
	"net"
	"sync"
	"time"
)

const (
	apiConsumerGroupHeartbeat = 68
	consumerBeatVersion       = 1

	leaveEpoch = -1
)

// owners is which partitions of the topic each member has.
type owners struct {
	sync.Mutex
	partitions int
	of         map[*consumer][]int32
	settled    time.Time // when each partition had a member at last
}

// set notes what a member has; whether so many members have all partitions now.
func (o *owners) set(m *consumer, partitions []int32, members int) bool {
	o.Lock()
	defer o.Unlock()
	if partitions == nil {
		delete(o.of, m)
	} else {
		o.of[m] = partitions
	}
	return o.check(members)
}

func (o *owners) check(members int) bool {
	if !o.settled.IsZero() {
		return true
	}
	seen, busy := map[int32]bool{}, 0
	for _, partitions := range o.of {
		for _, p := range partitions {
			seen[p] = true
		}
		if len(partitions) > 0 {
			busy++
		}
	}
	if len(seen) == o.partitions && busy == members {
		o.settled = time.Now()
		return true
	}
	return false
}

type consumer struct {
	net.Conn
	*owners
	group, topic, id string
	corr, epoch      int32
	topicID          []byte
	partitions       []int32
	changed          bool // since the last heartbeat, which names the partitions only then
}

// beat sends one heartbeat, and takes the assignment of the response.
func (m *consumer) beat(members int) (bool, error) {
	m.corr++
	e := header(apiConsumerGroupHeartbeat, consumerBeatVersion, m.corr, true)
	e.str(m.group)
	e.str(m.id)
	e.i32(m.epoch)
	e.null() // instance id
	e.null() // rack id
	if m.epoch == 0 {
		e.i32(rebalanceMs)
		e.arr(1)
		e.str(m.topic)
	} else {
		e.i32(-1)
		e.null() // topic names: as before
	}
	e.null() // regular expression
	e.null() // assignor
	switch {
	case m.epoch == 0 || m.changed && len(m.partitions) == 0:
		e.arr(0)
	case m.changed:
		e.arr(1)
		e.b = append(e.b, m.topicID...)
		e.arr(len(m.partitions))
		for _, p := range m.partitions {
			e.i32(p)
		}
		e.tags()
	default:
		e.null()
	}
	e.tags()
	m.changed = false
	b, err := ask(m.Conn, e.done())
	if err != nil {
		return false, err
	}
	d := &dec{b: b[4:], flex: true}
	d.tags()
	d.i32() // throttle
	if code := d.i16(); code != 0 {
		return false, kerr{code, d.str()}
	}
	d.str() // message
	m.id = d.str()
	m.epoch = d.i32()
	d.i32() // heartbeat interval
	if d.i8() < 0 {
		return m.set(m, m.partitions, members), d.err
	}
	m.partitions, m.changed = []int32{}, true
	for n := d.arr(); n > 0 && d.err == nil; n-- {
		m.topicID = append([]byte{}, d.take(16)...)
		for k := d.arr(); k > 0 && d.err == nil; k-- {
			m.partitions = append(m.partitions, d.i32())
		}
		d.tags()
	}
	d.tags()
	return m.set(m, m.partitions, members), d.err
}

// settle sends heartbeats until so many members have all partitions.
func (m *consumer) settle(members int) error {
	for {
		if done, err := m.beat(members); err != nil || done {
			return err
		}
		time.Sleep(beatPause)
	}
}

func (m *consumer) leave() error {
	m.epoch = leaveEpoch
	m.set(m, nil, -1)
	_, err := m.beat(-1)
	m.set(m, nil, -1)
	return err
}

// consumerRebalances measures, for one group: all n members join at once, one more joins, and it leaves again.
func (r *run) consumerRebalances(owner string, n int) (map[string]any, error) {
	if r.parts < n+1 {
		return nil, fmt.Errorf("%d members need as many partitions (-parts)", n+1)
	}
	o := &owners{partitions: r.parts, of: map[*consumer][]int32{}}
	members := make([]*consumer, n+1)
	for i := range members {
		c, err := dialWait(owner)
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", i, err)
		}
		defer c.Close()
		members[i] = &consumer{Conn: c, owners: o, group: r.groupName(0), topic: r.topicName(0), id: fmt.Sprintf("member-%d", i)}
	}
	if err := r.waitLoaded(&member{Conn: members[0].Conn, measuredGroup: &measuredGroup{group: r.groupName(0)}}); err != nil {
		return nil, err
	}
	first, comer := members[:n], members[n]
	out := map[string]any{"mode": *mode, "members": n}
	measure := func(name string, who []*consumer, count int, before func() error) error {
		o.settled = time.Time{}
		cpu, start := procs(*pids).cpu, time.Now()
		if err := before(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		errs := make(chan error, len(who))
		for _, m := range who {
			go func() { errs <- m.settle(count) }()
		}
		for range who {
			if err := <-errs; err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		out[name+"_ms"] = math.Round(o.settled.Sub(start).Seconds()*1e6) / 1000
		out[name+"_cpu_ms"] = math.Round((procs(*pids).cpu - cpu) * 1000)
		return nil
	}
	nothing := func() error { return nil }
	if err := measure("start", first, n, nothing); err != nil {
		return nil, err
	}
	if err := measure("join", members, n+1, nothing); err != nil {
		return nil, err
	}
	if err := measure("leave", first, n, comer.leave); err != nil {
		return nil, err
	}
	for _, m := range first {
		if err := m.leave(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
