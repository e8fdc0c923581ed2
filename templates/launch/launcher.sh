# PID 1 of the launcher: waits for names, counts the workers, starts the program and passes SIGTERM on to
# all ranks. The words after -- are those of the preflight, if there is one, and then the program.
#
# Exit codes of its own, before the program has started (gangplan explain, model/exits.py): 196 no setup
# file, 197 wrong hostfile, 198 a worker does not answer, 199 MPI does not reach all workers, 194 no
# preflight, 195 it does not end.
. "${0%/*}/common.sh"
gp_is_mpi=yes
. "${0%/*}/ranks.sh"

# Setup files of vendors use unset variables, and may fail or exit.
if [ -n "$gp_setup" ]; then
  [ -r "$gp_setup" ] || {
    echo "gangplan: $gp_setup is not in the image" >&2
    exit 196
  }
  # shellcheck disable=SC1090  # a file of the image
  gp_source_setup() { . "$gp_setup"; }
  exec 3>&2
  trap 'echo "gangplan: $gp_setup ended the launch" >&3' EXIT
  gp_source_setup >/dev/null 2>&1 || true
  trap - EXIT
  exec 3>&-
fi

set -eu
trap 'exit 143' TERM
[ "$gp_mpi" != openmpi ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" # mpirun -x wants it set
gp_node=$(uname -n)
gp_hosts=0
gp_hostfile=/etc/mpi/hostfile
gp_limit=$gp_wait
if [ "$gp_ssh_wait" -gt 0 ]; then
  gp_limit=$gp_ssh_wait
  gp_deadline=$(($(date +%s) + gp_ssh_wait))
fi
if [ "$gp_mpi" = hydra ]; then
  gp_hostfile=/tmp/gangplan-hosts
  : >/tmp/gangplan-hostfile
  : >/tmp/gangplan-hosts
fi
while read -r gp_host gp_slots _; do
  [ -n "$gp_host" ] || continue
  # The MPI operator writes host:slots for Hydra.
  case $gp_host in *:*) gp_slots=${gp_host#*:} gp_host=${gp_host%%:*} ;; esac
  gp_tries=0
  until getent hosts "$gp_host" >/dev/null; do
    gp_tries=$((gp_tries + 1))
    [ "$gp_tries" -lt "$gp_limit" ] || {
      echo "gangplan: $gp_host does not resolve after $gp_limit s" >&2
      exit 198
    }
    sleep 1
  done
  # In a pod group the launcher starts together with the workers, whose images may still be pulled.
  if [ "$gp_ssh_wait" -gt 0 ] && [ "${gp_host%%.*}" != "${gp_node%%.*}" ]; then
    until ssh -o BatchMode=yes -o ConnectTimeout=5 "$gp_host" true </dev/null 2>/tmp/gangplan-ssh; do
      [ "$(date +%s)" -lt "$gp_deadline" ] || {
        echo "gangplan: $gp_host does not answer by SSH after $gp_ssh_wait s" >&2
        cat /tmp/gangplan-ssh >&2
        exit 198
      }
      sleep 1
    done
  fi
  if [ "$gp_mpi" = hydra ]; then
    # Hydra asks SSH for any host but its own, and knows its own by no other name than this (Intel MPI
    # 2021.18).
    [ "${gp_host%%.*}" != "${gp_node%%.*}" ] || gp_host=$gp_node
    echo "$gp_host:${gp_slots#slots=}" >>/tmp/gangplan-hostfile
    echo "$gp_host" >>/tmp/gangplan-hosts
  fi
  gp_hosts=$((gp_hosts + 1))
done </etc/mpi/hostfile
[ "$gp_hosts" -eq "$gp_workers" ] || {
  echo "gangplan: the hostfile names $gp_hosts workers, the plan has $gp_workers" >&2
  exit 197
}

# A login's PATH is not the image's (HPC-X, NGC). By its full name, Open MPI's mpirun looks for its daemon
# beside itself.
gp_find() {
  gp_program=$1
  [ "$gp_mpi" = openmpi ] || return 0
  gp_path=$(command -v "$1") || return 0
  [ ! -x "${gp_path%/*}/prted" ] && [ ! -x "${gp_path%/*}/orted" ] || gp_program=$gp_path
}

# Intel MPI's mpirun fails when it meets the end of its input after the first programs have ended and before
# the last one has (2021.18, "error sending cmd 15 to proxy"). So Hydra gets an input that does not end.
gp_input=/dev/null
if [ "$gp_mpi" = hydra ]; then
  [ -p /tmp/gangplan-input ] || mkfifo /tmp/gangplan-input 2>/dev/null || :
  [ ! -p /tmp/gangplan-input ] || gp_input=/tmp/gangplan-input
fi

# Starts one program per worker by the run's own mpirun, and counts them.
gp_reach() {
  gp_find mpirun
  # The remote shell expands these. Its sleep: PRRTE 3 (Open MPI 5.0.11) now and then never ends when
  # programs do before all of them are reported.
  # shellcheck disable=SC2016
  case $gp_mpi in
  openmpi) set -- -np "$gp_workers" --bind-to none --map-by ppr:1:node sh -c 'echo "gangplan-host $(uname -n)"; sleep 1' ;;
  *) set -- -f /tmp/gangplan-hosts -n "$gp_workers" -ppn 1 sh -c 'echo "gangplan-host $(uname -n)"' ;;
  esac
  timeout -k 10 "$gp_wait" "$gp_program" "$@" <>"$gp_input" | sed -n 's/.*gangplan-host //p' | sort -u | wc -l
}
gp_reached=$(gp_reach)
[ "$gp_reached" -eq "$gp_workers" ] || {
  echo "gangplan: MPI reached $gp_reached of $gp_workers workers" >&2
  gp_fail 199
}
[ -z "$gp_hosts_in" ] || export "$gp_hosts_in=/tmp/gangplan-hostfile"

# Every rank looks at its worker, under this run's own mpirun. No code but the program's own may count as one
# of its findings: it may be missing, and an MPI of which two versions meet mostly hangs. Takes all words
# after --.
gp_inspect() {
  gp_number=$gp_preflight
  for gp_word; do
    shift
    [ "$gp_number" -eq 0 ] || {
      set -- "$@" "$gp_word"
      gp_number=$((gp_number - 1))
    }
  done
  gp_code=0
  timeout -k 10 "$gp_wait" "$gp_program" "$@" <>"$gp_input" || gp_code=$?
  case $gp_code in
  0) ;;
  183 | 184 | 186 | 187 | 188 | 189 | 190 | 191) gp_fail "$gp_code" ;;
  124 | 137)
    echo "gangplan: preflight did not end within $gp_wait s" >&2
    gp_fail 195
    ;;
  *)
    echo "gangplan: preflight did not run: mpirun ended with $gp_code" >&2
    gp_fail 194
    ;;
  esac
}
if [ "$gp_preflight" -gt 0 ]; then
  gp_find mpirun
  gp_inspect "$@"
  shift "$gp_preflight"
fi

if [ -n "$gp_deepspeed" ]; then
  for gp_name in $gp_deepspeed; do
    eval "gp_value=\${$gp_name}"
    # shellcheck disable=SC2154  # eval assigns it
    printf '%s=%s\n' "$gp_name" "$gp_value"
  done >"$HOME/.deepspeed_env"
fi
case $gp_mpi:$1 in
openmpi:mpirun | openmpi:mpiexec | openmpi:orterun | openmpi:prterun)
  gp_find "$1"
  shift
  set -- "$gp_program" "$@"
  ;;
esac
for gp_name in $gp_unset; do unset "$gp_name"; done

# Asks a worker to end its ranks, until it has.
gp_hand_on() {
  # shellcheck disable=SC2016  # the worker's shell expands it
  until ssh -o BatchMode=yes -o ConnectTimeout=5 -o ServerAliveInterval=10 "$1" 'exec sh -c ": >/dev/shm/gangplan-asked; kill -USR1 1; until [ -e /dev/shm/gangplan-ended ]; do sleep 1; done"' </dev/null >/dev/null 2>&1; do
    [ $? -ne 255 ] || return 0
    sleep 1
  done
}

# The MPI launcher itself gets no SIGTERM: it would kill the ranks. Workers are told by this pod too, because
# its own end may come alone (a deadline of its Job, a drained node).
gp_end() {
  trap '' TERM USR1
  [ -z "$gp_taken" ] || trap 'gp_told=yes' TERM
  (
    while read -r gp_host _; do
      [ -z "$gp_host" ] || [ "${gp_host%%.*}" = "${gp_node%%.*}" ] || gp_hand_on "$gp_host" &
    done <"$gp_hostfile"
    wait
  ) &
  gp_others=$!
  [ -z "$gp_has_ranks" ] || gp_end_ranks
  while kill -0 "$gp_others" 2>/dev/null && [ "$gp_left" -gt 0 ]; do gp_pass; done
  # shellcheck disable=SC2086  # process numbers
  [ -z "$gp_daemons" ] || kill -CONT $gp_daemons 2>/dev/null || :
  for _ in 1 2 3 4 5; do
    kill -0 "$gp_command" 2>/dev/null || break
    sleep 1
  done
  if [ -n "$gp_taken" ]; then
    kill -KILL "$gp_command" 2>/dev/null || :
    [ -n "$gp_told" ] || gp_fail 143
  fi
  exit 143
}

# Ranks that were told to end, saved and ended well leave a command that succeeded; the run has not. Only a
# worker that says so counts: one that does not answer may have ended after its work was done.
gp_was_interrupted() {
  gp_rounds=''
  while read -r gp_host _; do
    [ -z "$gp_host" ] || [ "${gp_host%%.*}" = "${gp_node%%.*}" ] || {
      gp_answer=$(timeout -k 5 30 ssh -o BatchMode=yes -o ConnectTimeout=5 "$gp_host" 'exec sh -c "[ ! -e /dev/shm/gangplan-told ] || { : >/dev/shm/gangplan-asked; echo gangplan-interrupted; }"' </dev/null 2>/dev/null) || :
      case $gp_answer in *gangplan-interrupted*)
        echo "gangplan: $gp_host was told to end before the command ended; the run is not complete" >&2
        : >/dev/shm/gangplan-interrupted
        ;;
      esac
    } &
    gp_rounds="$gp_rounds $!"
  done <"$gp_hostfile"
  # shellcheck disable=SC2086  # process numbers
  wait $gp_rounds
  [ -e /dev/shm/gangplan-interrupted ]
}

# The Job of the workers tells the others only when the one that is taken away has ended. They are told here,
# at once: a checkpoint may need all ranks.
gp_watch() {
  ssh -o BatchMode=yes -o ConnectTimeout=5 -o ServerAliveInterval=60 "$1" 'exec sh -c "trap \"\" TERM; until [ -e /dev/shm/gangplan-told ]; do sleep 1; done"' </dev/null >/dev/null 2>&1 || return 0
  kill -USR1 "$gp_me"
}

gp_taken='' gp_told='' gp_command=''
if [ "$gp_hold" -gt 0 ]; then
  read -r gp_me _ </proc/self/stat
  trap 'gp_taken=yes; gp_end' USR1
fi
trap gp_end TERM
"$@" &
gp_command=$!
if [ "$gp_hold" -gt 0 ]; then
  while read -r gp_host _; do
    [ -z "$gp_host" ] || [ "${gp_host%%.*}" = "${gp_node%%.*}" ] || gp_watch "$gp_host" &
  done <"$gp_hostfile"
fi
gp_code=0
wait "$gp_command" || gp_code=$?
[ "$gp_code" -ne 0 ] || ! gp_was_interrupted || gp_code=143
[ "$gp_code" -eq 0 ] || gp_fail "$gp_code"
exit 0
