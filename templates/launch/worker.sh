# PID 1 of a worker under MPI. An SSH server as PID 1 would end on SIGTERM, and the kernel would kill all
# ranks with it. The words after -- start the SSH server.
. "${0%/*}/common.sh"
gp_is_mpi=yes
. "${0%/*}/ranks.sh"

# The launcher's pod ends, and its ranks with it. This one stays until it is told to end itself: its Job must
# not fail before the launcher's, whose reason decides whether the run is tried again.
gp_ask() {
  trap '' USR1
  trap 'gp_told=yes' TERM
  : >/dev/shm/gangplan-told
  gp_end_ranks
  : >/dev/shm/gangplan-ended
  trap gp_end TERM
  [ -z "$gp_told" ] || gp_end
}

# Lists of process numbers are meant to fall into words.
# shellcheck disable=SC2086
gp_end() {
  trap '' TERM USR1
  : >/dev/shm/gangplan-told
  gp_end_ranks
  : >/dev/shm/gangplan-ended
  # The daemon has to report to the launcher. Where that ends too and asks, the daemon must not be missed
  # there while ranks elsewhere still save; where only this pod is taken away, nothing is worth waiting for.
  gp_sessions=${gp_servers#* "$gp_server" }
  gp_count $gp_sessions
  gp_patience=3
  while [ "$gp_alive" -gt 0 ] && [ "$gp_left" -gt 0 ]; do
    [ -e /dev/shm/gangplan-asked ] || [ "$gp_patience" -gt 0 ] || break
    gp_patience=$((gp_patience - 1))
    gp_pass
    gp_count $gp_sessions
  done
  # The launcher asks whether a command that ended well was told to.
  [ -z "$gp_ranks" ] || for _ in 1 2 3 4 5; do
    [ ! -e /dev/shm/gangplan-asked ] || break
    gp_pass
  done
  kill "$gp_server" 2>/dev/null
  # Not 0, whatever the ranks say: a pod that is taken away has not succeeded.
  exit 143
}

# Prints a variable as a line that a shell reads back, whatever is in it.
gp_export() {
  eval "gp_rest=\${$1-}"
  gp_value=''
  while :; do
    case $gp_rest in
    *\'*) gp_value="$gp_value${gp_rest%%\'*}'\\''" gp_rest=${gp_rest#*\'} ;;
    *) break ;;
    esac
  done
  printf "export %s='%s'\n" "$1" "$gp_value$gp_rest"
}

# What this pod alone knows, for the sessions of its SSH server: each begins with this file, and goes on with
# the command that it was opened for.
if [ -n "$gp_own$gp_given" ]; then
  {
    for gp_name in $gp_own; do gp_export "$gp_name"; done
    # What the cloud's webhook may have given to this container.
    for gp_name in $gp_given; do
      eval "[ -z \"\${$gp_name+set}\" ]" || gp_export "$gp_name"
    done
    # The session's own shell expands these.
    # shellcheck disable=SC2016
    printf '%s\n' 'gp_command=$SSH_ORIGINAL_COMMAND' 'unset SSH_ORIGINAL_COMMAND' 'exec "${SHELL:-/bin/sh}" -c "$gp_command"'
  } >/dev/shm/gangplan-session
fi

gp_told='' gp_server=''
trap gp_end TERM
trap gp_ask USR1
"$@" &
gp_server=$!
while :; do
  gp_code=0
  wait "$gp_server" || gp_code=$?
  kill -0 "$gp_server" 2>/dev/null || exit "$gp_code"
done
