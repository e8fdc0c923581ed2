"""Files of hosts on the launcher."""

HOSTFILE = "/etc/mpi/hostfile"  # written by Trainer (plugins/mpi), one `host slots=N` a line
HYDRA_HOSTS = "/tmp/gangplan-hosts"  # their names alone
HYDRA_HOSTFILE = "/tmp/gangplan-hostfile"  # the same hosts as Hydra reads them, `host:N`
