// Package login has the logins of sarama, whose SCRAM is left to its users.
package login

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

// Set sets how a client of sarama logs in.
func Set(config *sarama.Config, login contract.Login) {
	config.Net.SASL.Enable, config.Net.SASL.Mechanism = true, sarama.SASLMechanism(login.Mechanism)
	config.Net.SASL.User, config.Net.SASL.Password = login.User, login.Password
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		if login.Mechanism == sarama.SASLTypeSCRAMSHA512 {
			return &scramClient{hash: scram.SHA512}
		}
		return &scramClient{hash: scram.SHA256}
	}
}
