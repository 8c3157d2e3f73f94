package main

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kproto/tests/clients/drivers/contract"
)

// secured returns the options of a client of this broker.
func secured(r *run) []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(r.Bootstrap)}
	if config := contract.TLS(); config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	login := contract.SASL()
	auth := scram.Auth{User: login.User, Pass: login.Password}
	switch login.Mechanism {
	case "":
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: login.User, Pass: login.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(auth.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(auth.AsSha512Mechanism()))
	default:
		panic("no mechanism " + login.Mechanism)
	}
	return options
}
