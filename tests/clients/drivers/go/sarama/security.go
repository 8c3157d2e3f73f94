package main

import (
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"kproto/tests/clients/drivers/contract"
)

// scramClient is the SCRAM that sarama leaves to its users.
type scramClient struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *scramClient) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err != nil {
		return err
	}
	c.ClientConversation = client.NewConversation()
	return nil
}

// secure sets what the security of the broker needs, as `kproto run` gives it to its command.
func secure(config *sarama.Config) {
	if tls := contract.TLS(); tls != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, tls
	}
	login := contract.SASL()
	if login.Mechanism == "" {
		return
	}
	config.Net.SASL.Enable, config.Net.SASL.Mechanism = true, sarama.SASLMechanism(login.Mechanism)
	config.Net.SASL.User, config.Net.SASL.Password = login.User, login.Password
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		if login.Mechanism == sarama.SASLTypeSCRAMSHA512 {
			return &scramClient{hash: scram.SHA512}
		}
		return &scramClient{hash: scram.SHA256}
	}
}
