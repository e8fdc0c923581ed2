// Compiles a Jenkinsfile by Groovy, runs it, and prints all that it says as JSON: for each block, setting and step, the
// blocks that it stands in, and its arguments. Those that a recipe uses are listed by the block that they may stand in
// (jenkins.io, "Pipeline Syntax"); another one ends it with a MissingMethodException.
abstract class Steps extends Script {
  static final Map MAY = [
    '': ['pipeline'], pipeline: ['agent', 'options', 'triggers', 'environment', 'stages', 'post'],
    agent: ['docker'], docker: ['image'], options: ['disableConcurrentBuilds', 'timeout'], triggers: ['cron'],
    stages: ['stage'], stage: ['when', 'steps'], when: ['changeRequest'], steps: ['catchError', 'sh'], catchError: ['sh'],
    post: ['always', 'cleanup'], always: ['junit', 'archiveArtifacts'], cleanup: ['deleteDir'],
  ]
  List within = []
  List said = []

  def methodMissing(String name, Object given) {
    def words = (given as List).collect()
    def body = words && words[-1] instanceof Closure ? words.removeLast() : null
    if (!(name in MAY[within ? within[-1] : '']) || (body != null) != (name in MAY.keySet() + 'environment')) {
      throw new MissingMethodException(name, Steps, given as Object[])
    }
    said << [within.join('/'), name, words.collect { it instanceof CharSequence ? it.stripIndent() : it }]
    if (body != null) { within << name; body(); within.removeLast() }
  }
}

def configuration = new org.codehaus.groovy.control.CompilerConfiguration()
configuration.scriptBaseClass = Steps.name
def variables = new Binding()
def file = new GroovyShell(this.class.classLoader, variables, configuration).parse(new File(args[0]))
file.run()
println(groovy.json.JsonOutput.toJson([said: file.said, environment: variables.variables]))
