// Porcupine as the judge of registers: can the operations on each be put into one order that keeps to real time?
//
// Reads one JSON object a line, {"key": "raw-0 records:0", "client": 3, "from": 12, "to": 15, "write": "7 a#7"}, with
// "read" in the place of "write" for what was read; times in nanoseconds. A line {"key": K, "initial": V} says what is
// in a register before its first operation, if that is not "". An operation without "to" may have its effect at any
// time after its beginning, or never.
//
// Prints a line for each key: {"key": K, "result": "ok"}, or "illegal" with the first operation, as it came in, that the
// longest order found has no place for; or "unknown" when the time was over (seconds for each key: its only argument).
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

type line struct {
	Key     string  `json:"key"`
	Client  int     `json:"client"`
	From    int64   `json:"from"`
	To      *int64  `json:"to,omitempty"`
	Write   *string `json:"write,omitempty"`
	Read    *string `json:"read,omitempty"`
	Initial *string `json:"initial,omitempty"`
}

type verdict struct {
	Key    string `json:"key"`
	Result string `json:"result"`
	First  *line  `json:"first,omitempty"`
}

func register(initial string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return initial },
		Step: func(state, input, output any) (bool, any) {
			if asked := input.(*line); asked.Write != nil {
				return true, *asked.Write
			}
			return state.(string) == output.(string), state
		},
	}
}

func judge(key, initial string, history []porcupine.Operation, timeout time.Duration) verdict {
	result, found := porcupine.CheckOperationsVerbose(register(initial), history, timeout)
	switch result {
	case porcupine.Ok:
		return verdict{key, "ok", nil}
	case porcupine.Unknown:
		return verdict{key, "unknown", nil}
	}
	var longest []porcupine.Operation
	for _, orders := range found.PartialLinearizationsOperations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	placed := map[*line]bool{}
	for _, operation := range longest {
		placed[operation.Input.(*line)] = true
	}
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	for _, operation := range history {
		if asked := operation.Input.(*line); !placed[asked] {
			return verdict{key, "illegal", asked}
		}
	}
	return verdict{key, "illegal", nil}
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	initial := map[string]string{}
	histories := map[string][]porcupine.Operation{}
	var keys []string
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		one := &line{}
		if err := json.Unmarshal(lines.Bytes(), one); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if one.Initial != nil {
			initial[one.Key] = *one.Initial
			continue
		}
		if _, known := histories[one.Key]; !known {
			keys = append(keys, one.Key)
		}
		operation := porcupine.Operation{ClientId: one.Client, Input: one, Call: one.From, Return: math.MaxInt64}
		if one.To != nil {
			operation.Return = *one.To
		}
		if one.Read != nil {
			operation.Output = *one.Read
		}
		histories[one.Key] = append(histories[one.Key], operation)
	}
	answers := json.NewEncoder(os.Stdout)
	for _, key := range keys {
		answers.Encode(judge(key, initial[key], histories[key], time.Duration(seconds*float64(time.Second))))
	}
}
