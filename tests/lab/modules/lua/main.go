// Command lua runs health checks as Argo CD runs them: the same interpreter with the same libraries
// (argo-cd v3.5.1, util/lua/lua.go). It reads a JSON list of scripts and objects, and prints what they return.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

type question struct {
	Script string `json:"script"`
	Object any    `json:"object"`
}

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	answers := make([]map[string]string, 0, len(questions))
	for _, one := range questions {
		answers = append(answers, answer(one))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(2)
	}
}

func answer(one question) map[string]string {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return map[string]string{"error": err.Error()}
		}
	}
	state.SetGlobal("obj", value(state, one.Object))
	if err := state.DoString(one.Script); err != nil {
		return map[string]string{"error": err.Error()}
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return map[string]string{"error": "no table"}
	}
	result := map[string]string{}
	table.ForEach(func(key, entry lua.LValue) { result[key.String()] = entry.String() })
	return result
}

func value(state *lua.LState, from any) lua.LValue {
	switch typed := from.(type) {
	case bool:
		return lua.LBool(typed)
	case float64:
		return lua.LNumber(typed)
	case string:
		return lua.LString(typed)
	case []any:
		table := state.CreateTable(len(typed), 0)
		for _, item := range typed {
			table.Append(value(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(typed))
		for key, item := range typed {
			table.RawSetString(key, value(state, item))
		}
		return table
	}
	return lua.LNil
}
