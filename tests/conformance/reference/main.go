// Command reference says what Karpenter decides for provisioning scenarios in the format of docs/plan.md.
//
// It reads scenarios, one JSON object per line, from its standard input and writes for each a line
// {"name", "runs": [result, ...]}: Karpenter's decisions vary with the order of Go's maps, so each is made several
// times, on a cluster of its own. Nothing of Karpenter is changed: its Provisioner is asked, with a client that holds
// the scenario's objects, a cloud provider that offers its instance types, and a clock that stands still.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const longestLine = 1 << 28

func main() {
	path := flag.String("catalogues", "", "the file of catalogues")
	runs := flag.Int("runs", 1, "how often each scenario is decided")
	flag.Parse()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	registerLabels()
	if err := decideAll(*path, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func decideAll(path string, runs int) error {
	known, err := readCatalogues(path)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		line, err := decided(lines.Bytes(), known, runs)
		if err != nil {
			return err
		}
		_, _ = out.Write(append(line, '\n'))
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

// answer is one line of the output.
type answer struct {
	Name string   `json:"name"`
	Runs []result `json:"runs"`
}

func decided(line []byte, known catalogues, runs int) ([]byte, error) {
	made := answer{}
	for range runs {
		given, err := readScenario(line) // anew each time: Karpenter changes objects that it is given
		if err != nil {
			return nil, fmt.Errorf("reading a scenario, %w", err)
		}
		made.Name = given.Name
		made.Runs = append(made.Runs, decide(given, known))
	}
	return json.Marshal(made)
}
