// Which error a client gets from a secured listener: LIBRARY, with the cases as JSON in standard input.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
)

const topic = "orders"
const limit = 30 * time.Second

// Case is how a client reaches a listener; fields are empty where it does not need them.
type Case struct {
	Name, Servers, CA, Cert, Key, Mechanism, User, Password, Token string
}

func (c Case) tls() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(c.CA)))
	config := &tls.Config{RootCAs: roots}
	if c.Cert != "" {
		config.Certificates = []tls.Certificate{must(tls.LoadX509KeyPair(c.Cert, c.Key))}
	}
	return config
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	produce := map[string]func(context.Context, Case) error{"franz-go": franz, "sarama": viaSarama}[os.Args[1]]
	var cases []Case
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	found := map[string]string{}
	var lock sync.Mutex
	var all sync.WaitGroup
	for _, one := range cases {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			class := classOf(produce(ctx, one))
			lock.Lock()
			defer lock.Unlock()
			found[one.Name] = class
		})
	}
	all.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}

// classOf returns the name of Kafka's error, the kind of a refused certificate, or what else an error is.
func classOf(err error) string {
	var ofFranz *kerr.Error
	var ofSarama sarama.KError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var remote *net.OpError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &ofFranz):
		return ofFranz.Message
	case errors.As(err, &ofSarama):
		return kerr.ErrorForCode(int16(ofSarama)).(*kerr.Error).Message
	case errors.As(err, &invalid):
		return fmt.Sprintf("%T", invalid)
	case errors.As(err, &name):
		return fmt.Sprintf("%T", name)
	case errors.As(err, &authority):
		return fmt.Sprintf("%T", authority)
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "TLS alert"
	}
	// Errors whose cause is a text only.
	for _, known := range []string{"remote error: tls", "SASL Authentication failed", "SASL_AUTHENTICATION_FAILED", "invalid_token"} {
		if strings.Contains(err.Error(), known) {
			return known
		}
	}
	return fmt.Sprintf("%T: %v", err, err)
}
