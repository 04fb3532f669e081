// A kfake cluster of one broker as a process: Ringleader's benchmarks measure against it.
//
// usage: kfake [--topic NAME:PARTITIONS] [--data-dir DIR --sync]
//
//	--data-dir  keep offsets and groups in files there (in memory otherwise)
//	--sync      and fsync after every write
//
// Prints `ready HOST:PORT KFAKE-VERSION GO-VERSION`; ends with SIGTERM.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

const modulePath = "github.com/twmb/franz-go/pkg/kfake"

// The longest session that Kafka allows by default; kfake's own limit is shorter than a benchmark.
const maxSession = 30 * time.Minute

func die(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// version is what the go.mod beside this file asks for, as it was really linked.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == modulePath {
			return dependency.Version
		}
	}
	return "unknown"
}

func main() {
	topic := flag.String("topic", "", "NAME:PARTITIONS of a topic to create")
	dataDir := flag.String("data-dir", "", "directory for the cluster's state")
	sync := flag.Bool("sync", false, "fsync after every write")
	flag.Parse()

	options := []kfake.Opt{kfake.NumBrokers(1), kfake.GroupMaxSessionTimeout(maxSession)}
	if *topic != "" {
		name, count, _ := strings.Cut(*topic, ":")
		partitions, err := strconv.ParseInt(count, 10, 32)
		if err != nil {
			die(fmt.Errorf("--topic is NAME:PARTITIONS, not %q", *topic))
		}
		options = append(options, kfake.SeedTopics(int32(partitions), name))
	}
	if *dataDir != "" {
		options = append(options, kfake.DataDir(*dataDir))
	}
	if *sync {
		options = append(options, kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		die(err)
	}
	defer cluster.Close()
	fmt.Println("ready", cluster.ListenAddrs()[0], version(), runtime.Version())

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}
