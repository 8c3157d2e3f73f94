package main

import (
	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
	"kproto/tests/clients/drivers/login"
)

// secure sets what the security of the broker needs, as `kproto run` gives it to its command.
func secure(config *sarama.Config) {
	if tls := contract.TLS(); tls != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, tls
	}
	if found := contract.SASL(); found.Mechanism != "" {
		login.Set(config, found)
	}
}
