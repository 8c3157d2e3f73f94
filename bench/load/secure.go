package main

// TLS and SASL/PLAIN, for every mode of the load generator, and how many connections a second a server lets in.

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	apiSaslHandshake    = 17
	apiSaslAuthenticate = 36
)

var (
	caFile = flag.String("tls-ca", "", "connect by TLS; the file with the certificates to trust, in PEM")
	user   = flag.String("user", "", "authenticate by SASL/PLAIN as this user")
	secret = flag.String("password", "", "the user's password")
)

var trusted = sync.OnceValues(func() (*x509.CertPool, error) {
	pem, err := os.ReadFile(*caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", *caFile)
	}
	return pool, nil
})

// secured makes a connection what the flags say: TLS, authenticated, both or neither. An error closes it.
func secured(c net.Conn, addr string) (net.Conn, error) {
	c, err := overTLS(c, addr)
	if err == nil && *user != "" {
		err = authenticate(c)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func overTLS(c net.Conn, addr string) (net.Conn, error) {
	if *caFile == "" {
		return c, nil
	}
	pool, err := trusted()
	if err != nil {
		return c, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return c, err
	}
	t := tls.Client(c, &tls.Config{RootCAs: pool, ServerName: host})
	t.SetDeadline(time.Now().Add(30 * time.Second))
	defer t.SetDeadline(time.Time{})
	return t, t.Handshake()
}

func authenticate(c net.Conn) error {
	e := header(apiSaslHandshake, 1, 1, false)
	e.str("PLAIN")
	b, err := ask(c, e.done())
	if err != nil {
		return err
	}
	d := dec{b: b[4:]}
	if code := d.i16(); code != 0 || d.err != nil {
		return fmt.Errorf("SaslHandshake: error %d", code)
	}
	e = header(apiSaslAuthenticate, 0, 2, false)
	token := "\x00" + *user + "\x00" + *secret
	e.i32(int32(len(token)))
	e.b = append(e.b, token...)
	if b, err = ask(c, e.done()); err != nil {
		return err
	}
	d = dec{b: b[4:]}
	if code := d.i16(); code != 0 || d.err != nil {
		return fmt.Errorf("SaslAuthenticate: error %d", code)
	}
	return nil
}

// handshakes connects, authenticates and closes, again and again, with so many connections at a time.
func handshakes(addr string, conns int) (map[string]any, error) {
	c, err := dialWait(addr)
	if err != nil {
		return nil, err
	}
	c.Close()
	var stop atomic.Bool
	var from atomic.Int64
	from.Store(math.MaxInt64)
	start := time.Now()
	hists, counts, errs := make([]hist, conns), make([]atomic.Int64, conns), make([]error, conns)
	var wg sync.WaitGroup
	for i := range conns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !stop.Load() && errs[i] == nil {
				at := time.Since(start)
				var c net.Conn
				if c, errs[i] = net.DialTimeout("tcp", addr, 10*time.Second); errs[i] != nil {
					return
				}
				if c, errs[i] = secured(c, addr); errs[i] != nil {
					return
				}
				c.Close()
				if now := time.Since(start); int64(at) >= from.Load() {
					hists[i].add(int64(now - at))
					counts[i].Add(1)
				}
			}
		}()
	}
	time.Sleep(time.Duration(*warmup * 1e9))
	before, began := procs(*pids), time.Now()
	from.Store(int64(time.Since(start)))
	time.Sleep(time.Duration(*duration * 1e9))
	seconds, after := time.Since(began).Seconds(), procs(*pids)
	var done int64
	for i := range counts {
		done += counts[i].Load()
	}
	stop.Store(true)
	wg.Wait()
	h := &hist{}
	for i := range hists {
		h.merge(&hists[i])
		if errs[i] != nil {
			return nil, errs[i]
		}
	}
	out := map[string]any{"mode": "handshakes", "conns": conns, "requests": done, "requests_s": float64(done) / seconds,
		"p50_us": h.us(.5), "p99_us": h.us(.99)}
	if *pids != "" {
		out["server_cpu_us_per_request"] = (after.cpu - before.cpu) * 1e6 / float64(max(1, done))
	}
	return out, nil
}
