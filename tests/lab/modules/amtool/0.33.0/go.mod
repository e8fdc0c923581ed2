module gangplan.dev/lab

go 1.25.0

require github.com/prometheus/alertmanager v0.33.0
