package contract

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// TLS returns the settings for the CA in the environment, as `kproto run` gives it to its command; nil without one.
func TLS() *tls.Config {
	file := os.Getenv("KAFKA_SSL_CA_LOCATION")
	if file == "" {
		return nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		panic("no certificate in " + file)
	}
	return &tls.Config{RootCAs: roots}
}

// Login is how the client authenticates by SASL; Mechanism is empty without SASL.
type Login struct {
	Mechanism, User, Password string
}

// SASL returns the login in the environment.
func SASL() Login {
	return Login{os.Getenv("KAFKA_SASL_MECHANISM"), os.Getenv("KAFKA_SASL_USERNAME"), os.Getenv("KAFKA_SASL_PASSWORD")}
}
