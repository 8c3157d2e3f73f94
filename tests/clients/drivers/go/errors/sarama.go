package main

import (
	"context"
	"errors"

	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
	"kproto/tests/clients/drivers/login"
)

type token string

func (t token) Token() (*sarama.AccessToken, error) { return &sarama.AccessToken{Token: string(t)}, nil }

func viaSarama(_ context.Context, c Case) error {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Metadata.Retry.Max = 1
	config.Net.TLS.Enable, config.Net.TLS.Config = true, c.tls()
	config.Producer.Return.Successes = true
	if c.Mechanism != "" {
		login.Set(config, contract.Login{Mechanism: c.Mechanism, User: c.User, Password: c.Password})
		config.Net.SASL.TokenProvider = token(c.Token)
	}
	producer, err := sarama.NewSyncProducer([]string{c.Servers}, config)
	if err != nil {
		return err
	}
	_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("v")})
	return errors.Join(err, producer.Close())
}
