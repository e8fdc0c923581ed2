// GitHub's own evaluator of expressions and parser of workflows, asked on standard input:
//   {"folder": ..., "expressions": [{"text", "contexts", "cancelled", "failed"}], "workflows": [{"name", "content"}]}
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

// The parser imports its schema as bundlers allow it.
registerHooks({
  load(url, context, next) {
    if (!url.endsWith(".json")) return next(url, context);
    const source = `export default ${readFileSync(fileURLToPath(url), "utf8")}`;
    return { format: "module", shortCircuit: true, source };
  },
});

const asked = JSON.parse(readFileSync(0, "utf8"));
const resolve = (name) => import(pathToFileURL(`${asked.folder}/node_modules/${name}/dist/index.js`).href);
const { Lexer, Parser, Evaluator, data } = await resolve("@actions/expressions");
const { parseWorkflow, NoOperationTraceWriter } = await resolve("@actions/workflow-parser");

function evaluate({ text, contexts, cancelled, failed }) {
  const told = { cancelled, failure: failed && !cancelled, success: !failed && !cancelled, always: true };
  const functions = Object.entries(told).map(([name, value]) => ({
    name, minArgs: 0, maxArgs: 0, call: () => new data.BooleanData(value),
  }));
  // A condition without a status function is asked only after success.
  const whole = /\b(success|failure|cancelled|always)\(/.test(text) ? text : `success() && (${text})`;
  const values = JSON.parse(JSON.stringify(contexts), data.reviver);
  const names = Object.keys(contexts);
  const tree = new Parser(new Lexer(whole).lex().tokens, names, functions).parse();
  const called = new Map(functions.map((one) => [one.name, one]));
  const answer = new Evaluator(tree, values, called).evaluate();
  return answer.coerceString();
}

const workflows = (asked.workflows ?? []).map((one) => {
  const parsed = parseWorkflow(one, new NoOperationTraceWriter());
  return parsed.context.errors.getErrors().map((error) => error.message);
});
const answers = (asked.expressions ?? []).map(evaluate);
console.log(JSON.stringify({ answers, workflows }));
