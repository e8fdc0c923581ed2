package main

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// dump writes the checked tree as nested lists: [kind, detail..., type, overloads].
func dump(a *cel.Ast) any {
	native := a.NativeRep()
	var walk func(e ast.Expr) any
	walk = func(e ast.Expr) any {
		node := map[string]any{"type": native.GetType(e.ID()).String()}
		if ids := native.GetOverloadIDs(e.ID()); len(ids) > 0 {
			node["overloads"] = ids
		}
		start := native.SourceInfo().GetStartLocation(e.ID())
		node["at"] = []int{start.Line(), start.Column()}
		many := func(es []ast.Expr) []any {
			out := []any{}
			for _, x := range es {
				out = append(out, walk(x))
			}
			return out
		}
		switch e.Kind() {
		case ast.LiteralKind:
			node["literal"] = jsonable(e.AsLiteral())
		case ast.IdentKind:
			node["ident"] = e.AsIdent()
		case ast.SelectKind:
			s := e.AsSelect()
			node["select"], node["of"], node["test"] = s.FieldName(), walk(s.Operand()), s.IsTestOnly()
		case ast.CallKind:
			c := e.AsCall()
			node["call"], node["args"] = c.FunctionName(), many(c.Args())
			if c.IsMemberFunction() {
				node["target"] = walk(c.Target())
			}
		case ast.ListKind:
			node["list"], node["optional"] = many(e.AsList().Elements()), e.AsList().OptionalIndices()
		case ast.MapKind:
			entries := []any{}
			for _, x := range e.AsMap().Entries() {
				m := x.AsMapEntry()
				entries = append(entries, []any{walk(m.Key()), walk(m.Value()), m.IsOptional()})
			}
			node["map"] = entries
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			node["loop"] = []any{c.IterVar(), c.IterVar2(), c.AccuVar()}
			node["parts"] = many([]ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()})
		default:
			node["other"] = fmt.Sprint(e.Kind())
		}
		return node
	}
	return walk(native.Expr())
}
