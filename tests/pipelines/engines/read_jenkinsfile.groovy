// Compiles a Jenkinsfile by Groovy, runs it, and prints a line for each stage: its name, its variables, and the text
// of its shell step, as Base64. The steps of Jenkins are those that the Jenkinsfile uses, and only tell what they got.
abstract class Steps extends Script {
  String stage = ''
  List variables = []

  def pipeline(Closure body) { inside(body) }
  def stages(Closure body) { inside(body) }
  def steps(Closure body) { inside(body) }
  def script(Closure body) { inside(body) }
  def options(Closure body) { inside(body) }
  def agent(Object where) { }
  def getAny() { 'any' }
  def disableConcurrentBuilds() { }
  def stage(String name, Closure body) { stage = name; inside(body) }
  def withEnv(List words, Closure body) { variables = words; inside(body) }
  def sh(String text) { println([stage, variables.join(','), text.stripIndent().bytes.encodeBase64()].join('\t')) }

  private void inside(Closure body) { body.delegate = this; body() }
}

def configuration = new org.codehaus.groovy.control.CompilerConfiguration()
configuration.scriptBaseClass = Steps.name
new GroovyShell(this.class.classLoader, new Binding(), configuration).evaluate(new File(args[0]))
