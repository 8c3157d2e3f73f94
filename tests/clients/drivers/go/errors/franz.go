package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func franz(ctx context.Context, c Case) error {
	options := []kgo.Opt{kgo.SeedBrokers(c.Servers), kgo.DialTLSConfig(c.tls()), kgo.AllowAutoTopicCreation()}
	auth := scram.Auth{User: c.User, Pass: c.Password}
	mechanisms := map[string]func() sasl.Mechanism{
		"PLAIN":         plain.Auth{User: c.User, Pass: c.Password}.AsMechanism,
		"SCRAM-SHA-256": auth.AsSha256Mechanism,
		"SCRAM-SHA-512": auth.AsSha512Mechanism,
		"OAUTHBEARER":   oauth.Auth{Token: c.Token}.AsMechanism,
	}
	if c.Mechanism != "" {
		options = append(options, kgo.SASL(mechanisms[c.Mechanism]()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	return client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr()
}
