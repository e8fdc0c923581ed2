package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	admcel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

type named struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type request struct {
	ID        any                        `json:"id,omitempty"`
	Expr      string                     `json:"expr"`
	Minor     int                        `json:"minor,omitempty"`  // compatibility version, default 34
	Stored    bool                       `json:"stored,omitempty"` // StoredExpressions environment
	Declare   map[string]string          `json:"declare,omitempty"`
	Schemas   map[string]json.RawMessage `json:"schemas,omitempty"` // variable -> OpenAPI v3 schema (x-kubernetes-* kept)
	Root      bool                       `json:"root,omitempty"`    // the schemas are resource roots (metadata, apiVersion, kind)
	Values    map[string]json.RawMessage `json:"values,omitempty"`
	Variables []named                    `json:"variables,omitempty"`
	NoParams  bool                       `json:"noParams,omitempty"`
	NoAuthz   bool                       `json:"noAuthorizer,omitempty"`
	NoEval    bool                       `json:"noEval,omitempty"`
	AST       bool                       `json:"ast,omitempty"`
}

type issue struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"` // 0-based, code points
	Message string `json:"message"`
}

type answer struct {
	ID      any     `json:"id,omitempty"`
	Expr    string  `json:"expr"`
	Outcome string  `json:"outcome"`
	Type    string  `json:"type,omitempty"`
	Value   any     `json:"value,omitempty"`
	Kind    string  `json:"kind,omitempty"` // runtime type of the value
	Error   string  `json:"error,omitempty"`
	Issues  []issue `json:"issues,omitempty"`
	Cost    *uint64 `json:"cost,omitempty"`
	AST     any     `json:"ast,omitempty"`
}

type allow struct{}

func (allow) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if strings.HasPrefix(a.GetVerb(), "deny") {
		return authorizer.DecisionDeny, "denied by the oracle", nil
	}
	return authorizer.DecisionAllow, "", nil
}

var (
	cacheLock sync.Mutex
	cache     = map[string]*cel.Env{}
)

func parseType(s string) *cel.Type {
	s = strings.TrimSpace(s)
	simple := map[string]*cel.Type{"dyn": cel.DynType, "any": cel.AnyType, "bool": cel.BoolType, "int": cel.IntType, "uint": cel.UintType,
		"double": cel.DoubleType, "string": cel.StringType, "bytes": cel.BytesType, "null_type": cel.NullType,
		"google.protobuf.Duration": cel.DurationType, "google.protobuf.Timestamp": cel.TimestampType,
		"duration": cel.DurationType, "timestamp": cel.TimestampType,
		"kubernetes.Quantity": apiservercel.QuantityType, "kubernetes.URL": apiservercel.URLType,
		"net.IP": apiservercel.IPType, "net.CIDR": apiservercel.CIDRType, "kubernetes.Semver": apiservercel.SemverType}
	if t, ok := simple[s]; ok {
		return t
	}
	open := strings.Index(s, "(")
	if open < 0 || !strings.HasSuffix(s, ")") {
		panic("unknown type " + s)
	}
	inner, depth, parts, start := s[open+1:len(s)-1], 0, []string{}, 0
	for i, r := range inner {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts, start = append(parts, inner[start:i]), i+1
			}
		}
	}
	parts = append(parts, inner[start:])
	switch s[:open] {
	case "list":
		return cel.ListType(parseType(parts[0]))
	case "map":
		return cel.MapType(parseType(parts[0]), parseType(parts[1]))
	case "optional_type":
		return cel.OptionalType(parseType(parts[0]))
	case "type":
		return types.NewTypeTypeWithParam(parseType(parts[0]))
	}
	panic("unknown type " + s)
}

func options(r *request, schemas map[string]*spec.Schema) ([]cel.EnvOption, []*apiservercel.DeclType) {
	var opts []cel.EnvOption
	var decls []*apiservercel.DeclType
	if r.Declare == nil && r.Schemas == nil {
		ns, req := admcel.BuildNamespaceType(), admcel.BuildRequestType()
		decls = append(decls, ns, req)
		opts = append(opts, cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
			cel.Variable("namespaceObject", ns.CelType()), cel.Variable("request", req.CelType()))
		if !r.NoParams {
			opts = append(opts, cel.Variable("params", cel.DynType))
		}
		if !r.NoAuthz {
			opts = append(opts, cel.Variable("authorizer", library.AuthorizerType),
				cel.Variable("authorizer.requestResource", library.ResourceCheckType))
		}
	}
	for name, t := range r.Declare {
		opts = append(opts, cel.Variable(name, parseType(t)))
	}
	for name, s := range schemas {
		decl := openapi.SchemaDeclType(s, r.Root).MaybeAssignTypeName("selfType." + name)
		decls = append(decls, decl)
		opts = append(opts, cel.Variable(name, decl.CelType()))
	}
	return opts, decls
}

func build(r *request, schemas map[string]*spec.Schema) (*environment.EnvSet, *admcel.CompositionEnv, error) {
	base := environment.MustBaseEnvSet(version.MajorMinor(1, uint(r.Minor)), true)
	var composition *admcel.CompositionEnv
	if len(r.Variables) > 0 || (r.Declare == nil && r.Schemas == nil) {
		c, err := admcel.NewCompositionEnv(admcel.VariablesTypeName, base)
		if err != nil {
			return nil, nil, err
		}
		composition, base = c, c.EnvSet
	}
	opts, decls := options(r, schemas)
	set, err := base.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: opts, DeclTypes: decls})
	if err != nil {
		return nil, nil, err
	}
	set, err = set.Extend(environment.StrictCostOpt)
	return set, composition, err
}

func environmentOf(r *request, schemas map[string]*spec.Schema) (*cel.Env, *admcel.CompositionEnv, error) {
	key := ""
	if len(r.Variables) == 0 {
		b, _ := json.Marshal([]any{r.Minor, r.Stored, r.Declare, r.Schemas, r.Root, r.NoParams, r.NoAuthz})
		key = string(b)
		cacheLock.Lock()
		env, ok := cache[key]
		cacheLock.Unlock()
		if ok {
			return env, nil, nil
		}
	}
	set, composition, err := build(r, schemas)
	if err != nil {
		return nil, nil, err
	}
	mode := environment.NewExpressions
	if r.Stored {
		mode = environment.StoredExpressions
	}
	env, err := set.Env(mode)
	if key != "" && err == nil {
		cacheLock.Lock()
		cache[key] = env
		cacheLock.Unlock()
	}
	return env, composition, err
}

func jsonable(v ref.Val) any {
	switch t := v.(type) {
	case types.Bool:
		return bool(t)
	case types.Int:
		return int64(t)
	case types.Uint:
		return map[string]any{"$uint": fmt.Sprint(uint64(t))}
	case types.Double:
		f := float64(t)
		if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 && math.Signbit(f) {
			return map[string]any{"$double": fmt.Sprint(f)}
		}
		return f
	case types.String:
		return string(t)
	case types.Bytes:
		return map[string]any{"$bytes": []byte(t)}
	case types.Null:
		return nil
	case types.Duration:
		return map[string]any{"$duration": t.Duration.Nanoseconds()}
	case types.Timestamp:
		return map[string]any{"$timestamp": fmt.Sprintf("%d.%09d", t.Time.Unix(), t.Time.Nanosecond())}
	case *types.Optional:
		if !t.HasValue() {
			return map[string]any{"$optional": []any{}}
		}
		return map[string]any{"$optional": []any{jsonable(t.GetValue())}}
	case *types.Type:
		return map[string]any{"$type": t.String()}
	case *types.Err:
		return map[string]any{"$error": t.Error()}
	case traits.Lister:
		out := []any{}
		for it := t.Iterator(); it.HasNext() == types.True; {
			out = append(out, jsonable(it.Next()))
		}
		return out
	case traits.Mapper:
		plain, pairs := map[string]any{}, [][]any{}
		allStrings := true
		for it := t.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			val := jsonable(t.Get(k))
			if s, ok := k.(types.String); ok {
				plain[string(s)] = val
			} else {
				allStrings = false
			}
			pairs = append(pairs, []any{jsonable(k), val})
		}
		if allStrings {
			return plain
		}
		sort.Slice(pairs, func(i, j int) bool { return fmt.Sprint(pairs[i][0]) < fmt.Sprint(pairs[j][0]) })
		return map[string]any{"$map": pairs}
	}
	return map[string]any{"$" + v.Type().TypeName(): fmt.Sprint(v.Value())}
}

type accessor struct{ text, name string }

func (a accessor) GetExpression() string    { return a.text }
func (a accessor) GetName() string          { return a.name }
func (a accessor) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType} }

func answerTo(r *request) (a answer) {
	a.ID, a.Expr = r.ID, r.Expr
	defer func() {
		if p := recover(); p != nil {
			a.Outcome, a.Error = "panic", fmt.Sprint(p)
		}
	}()
	if r.Minor == 0 {
		r.Minor = 34
	}
	schemas := map[string]*spec.Schema{}
	for name, raw := range r.Schemas {
		s := &spec.Schema{}
		if err := json.Unmarshal(raw, s); err != nil {
			a.Outcome, a.Error = "bad-request", err.Error()
			return
		}
		schemas[name] = s
	}
	env, composition, err := environmentOf(r, schemas)
	if err != nil {
		a.Outcome, a.Error = "bad-request", err.Error()
		return
	}
	for _, v := range r.Variables {
		ast, iss := env.Compile(v.Expression)
		result := admcel.CompilationResult{ExpressionAccessor: accessor{v.Expression, v.Name}}
		if iss != nil {
			result.Error = &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: "compilation failed: " + iss.String()}
		} else if result.Program, err = env.Program(ast); err != nil {
			result.Error = &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: err.Error()}
		} else {
			result.OutputType = ast.OutputType()
		}
		composition.AddField(v.Name, result.OutputType)
		composition.CompiledVariables[v.Name] = result
	}
	ast, iss := env.Compile(r.Expr)
	if iss != nil {
		a.Outcome, a.Error = "compile-error", iss.String()
		for _, e := range iss.Errors() {
			a.Issues = append(a.Issues, issue{e.Location.Line(), e.Location.Column(), e.Message})
		}
		return
	}
	a.Type = ast.OutputType().String()
	if r.AST {
		a.AST = dump(ast)
	}
	program, err := env.Program(ast, cel.InterruptCheckFrequency(100))
	if err != nil {
		a.Outcome, a.Error = "program-error", err.Error()
		return
	}
	if r.NoEval {
		a.Outcome = "compiled"
		return
	}
	evaluate(r, &a, program, composition, schemas)
	return
}

func evaluate(r *request, a *answer, program cel.Program, composition *admcel.CompositionEnv, schemas map[string]*spec.Schema) {
	activation := map[string]any{}
	for name, raw := range r.Values {
		var v any
		if err := kjson.Unmarshal(raw, &v); err != nil {
			a.Outcome, a.Error = "bad-request", err.Error()
			return
		}
		if s, ok := schemas[name]; ok {
			v = openapi.UnstructuredToVal(v, s)
		}
		activation[name] = v
	}
	if r.Declare == nil && r.Schemas == nil {
		for _, name := range []string{"object", "oldObject", "params", "request", "namespaceObject"} {
			if _, ok := activation[name]; !ok {
				activation[name] = nil
			}
		}
		u := &user.DefaultInfo{Name: "argocd", Groups: []string{"system:serviceaccounts", "ops"}}
		activation["authorizer"] = library.NewAuthorizerVal(u, allow{})
		attrs := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "ns", "n",
			schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", admission.Create, nil, false, u)
		activation["authorizer.requestResource"] = library.NewResourceAuthorizerVal(u, allow{}, attrs)
	}
	ctx := context.Background()
	var cc admcel.CompositionContext
	if composition != nil {
		cc = composition.CreateContext(ctx)
		activation["variables"] = cc.Variables(activation)
		ctx = cc
	}
	out, details, err := program.ContextEval(ctx, activation)
	if details != nil && details.ActualCost() != nil {
		cost := *details.ActualCost()
		if cc != nil {
			cost += uint64(cc.GetAndResetCost())
		}
		a.Cost = &cost
	}
	if err != nil {
		a.Outcome, a.Error = "runtime-error", err.Error()
		return
	}
	a.Outcome, a.Kind, a.Value = "value", out.Type().TypeName(), jsonable(out)
	if a.Value == nil {
		a.Value = json.RawMessage("null")
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 64<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		var r request
		var a answer
		if err := json.Unmarshal(line, &r); err != nil {
			a = answer{Outcome: "bad-request", Error: err.Error()}
		} else {
			a = answerTo(&r)
		}
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(a); err != nil {
			a.Value, a.Error = nil, "not encodable: "+err.Error()
			enc.Encode(a)
		}
		out.Write(buf.Bytes())
		out.Flush()
	}
}
