module gangplan.dev/lab

go 1.18

tool github.com/hmarr/codeowners/cmd/codeowners

require (
	github.com/hmarr/codeowners v1.2.1 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
)
