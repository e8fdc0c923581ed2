// Answers of the library that the CronJob controller uses, one JSON document per line of input.
//
// A line is {"cron": TEXT, "zone": NAME, "after": SECONDS, "count": NUMBER}; its answer is {"error": TEXT} or
// {"starts": [SECONDS, ...]}, shorter where the library finds no further start.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

type question struct {
	Cron  string `json:"cron"`
	Zone  string `json:"zone"`
	After int64  `json:"after"`
	Count int    `json:"count"`
}

func answer(asked question) map[string]any {
	if _, err := cron.ParseStandard(asked.Cron); err != nil {
		return map[string]any{"error": err.Error()}
	}
	// As the controller does (pkg/controller/cronjob, formatSchedule).
	schedule, err := cron.ParseStandard(fmt.Sprintf("TZ=%s %s", asked.Zone, asked.Cron))
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	at, found := time.Unix(asked.After, 0).UTC(), []int64{}
	for len(found) < asked.Count {
		at = schedule.Next(at)
		if at.IsZero() {
			break
		}
		found = append(found, at.Unix())
	}
	return map[string]any{"starts": found}
}

func main() {
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(answer(asked)); err != nil {
			panic(err)
		}
	}
}
