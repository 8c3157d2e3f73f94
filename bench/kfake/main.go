// kfakeserver runs kfake as a server on one port, for measurements beside kproto, until it is terminated.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1 (0: a free one)")
	dataDir := flag.String("data-dir", "", "keep everything in this directory (none: in memory only)")
	syncWrites := flag.Bool("sync-writes", false, "sync each batch that is written there")
	flag.Parse()
	// Metadata creates topics, as on the other measured servers.
	options := []kfake.Opt{kfake.NumBrokers(1), kfake.Ports(*port), kfake.AllowAutoTopicCreation()}
	if *dataDir != "" {
		options = append(options, kfake.DataDir(*dataDir))
	}
	if *syncWrites {
		options = append(options, kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kfakeserver:", err)
		os.Exit(1)
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}
