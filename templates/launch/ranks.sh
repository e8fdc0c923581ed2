# Tells the ranks of this pod to end, and waits for them. Needs a shell and /proc, no ps or pkill.
#
# A rank's first process is what an MPI daemon has started; where there is no daemon (Horovod with gloo,
# DeepSpeed's pdsh), what an SSH session has. A shell passes no signal on, so its children count as well;
# other children (data loaders) do not, for a trainer fails in the middle of saving when one of them is
# killed.
#
# A daemon reports the first rank that ends by the signal, and its launcher then kills all others: after 1 s
# with Open MPI 4.1.8 and 5.0.11, at once with MPICH 5.0.2 and Intel MPI 2021.18. So daemons stand still
# until it is known that every rank lives on (MPI_Finalize needs them); where one does not, they stand still
# to the end.
#
# Without MPI, torchrun is the daemon: it kills the ranks 30 s after it hears a SIGTERM or loses one of
# them, whatever time the pod has (torch 2.6, distributed/elastic/multiprocessing/api.py, _close). Its name
# is that of a Python.
gp_daemons=''
gp_ranks=''

# Whether the process with this command line (a file of /proc) is torchrun or one of its kind.
gp_starts_ranks() {
  set -f
  # Words are what is asked for: $1 is a list of them.
  # shellcheck disable=SC2046
  set -- $(tr '\0' ' ' <"$1" 2>/dev/null)
  set +f
  case ${1##*/} in python*) shift ;; esac
  while [ $# -gt 0 ]; do
    case $1 in
    -m)
      shift
      break
      ;;
    -W | -X)
      shift
      [ $# -eq 0 ] || shift
      ;;
    -*) shift ;;
    *) break ;;
    esac
  done
  case "${1:-} ${2:-} " in
  torch.distributed.run\ * | torch.distributed.launch\ * | */torch/distributed/run.py\ *) ;;
  torchrun\ * | */torchrun\ * | accelerate.commands.launch\ *) ;;
  accelerate\ launch\ * | */accelerate\ launch\ * | accelerate-launch\ * | */accelerate-launch\ *) ;;
  *) return 1 ;;
  esac
}

# Sets gp_daemons, gp_servers (SSH servers and their sessions) and gp_ranks to process numbers.
gp_look() {
  read -r gp_self _ </proc/self/stat
  gp_all=''
  for gp_stat in /proc/[0-9]*/stat; do
    { read -r gp_line <"$gp_stat"; } 2>/dev/null || continue
    gp_name=${gp_line#*(}
    gp_rest=${gp_line##*) ? }
    gp_kind=program
    case ${gp_name%)*} in
    orte* | prte* | mpirun* | mpiexec* | hydra_*) [ -z "$gp_is_mpi" ] || gp_kind=daemon ;;
    sshd*) [ -z "$gp_is_mpi" ] || gp_kind=server ;;
    ssh) [ -z "$gp_is_mpi" ] || gp_kind=client ;;
    sh | ash | bash | dash | ksh | zsh) gp_kind=shell ;;
    esac
    if [ -z "$gp_is_mpi" ] && [ "$gp_kind" = program ] && gp_starts_ranks "${gp_stat%stat}cmdline"; then
      gp_kind=daemon
    fi
    gp_all="$gp_all ${gp_line%% *}:${gp_rest%% *}:$gp_kind"
  done
  # Only what comes from here: no shell that somebody opened by kubectl exec.
  gp_ours=" $gp_self " gp_before=''
  until [ "$gp_ours" = "$gp_before" ]; do
    gp_before=$gp_ours
    for gp_one in $gp_all; do
      gp_split
      case "$gp_ours" in *" $gp_pid "*) ;; *" $gp_parent "*) gp_ours="$gp_ours$gp_pid " ;; esac
    done
  done
  gp_daemons='' gp_servers=' ' gp_parents=' '
  for gp_one in $gp_all; do
    gp_split
    case "$gp_kind$gp_ours" in
    daemon*" $gp_pid "*) gp_daemons="$gp_daemons $gp_pid" gp_parents="$gp_parents$gp_parent " ;;
    server*" $gp_pid "*) gp_servers="$gp_servers$gp_pid " ;;
    esac
  done
  gp_above="$gp_daemons "
  if [ -z "$gp_daemons" ]; then
    gp_above=$gp_servers
    [ -n "$gp_is_mpi" ] || gp_above=" $gp_self "
  fi
  gp_ranks='' gp_before=none
  until [ "$gp_ranks" = "$gp_before" ]; do
    gp_before=$gp_ranks
    for gp_one in $gp_all; do
      gp_split
      case "$gp_kind$gp_above" in program*" $gp_parent "* | shell*" $gp_parent "*) ;; *) continue ;; esac
      case "$gp_parents$gp_ranks " in *" $gp_pid "*) continue ;; esac
      gp_ranks="$gp_ranks $gp_pid"
      [ "$gp_kind" != shell ] || gp_above="$gp_above$gp_pid "
    done
  done
}

# Splits PID:PARENT:KIND.
gp_split() {
  gp_pid=${gp_one%%:*} gp_parent=${gp_one#*:} gp_kind=${gp_one##*:}
  gp_parent=${gp_parent%:*}
}

# Sets gp_alive to how many of these processes have not ended.
gp_count() {
  gp_alive=0
  for gp_pid; do
    { read -r gp_line <"/proc/$gp_pid/stat"; } 2>/dev/null || continue
    case ${gp_line##*) } in [ZX]*) ;; *) gp_alive=$((gp_alive + 1)) ;; esac
  done
}

# Sends SIGTERM to all ranks and waits until they have ended, as long as the grace period allows.
# Lists of process numbers are meant to fall into words.
# shellcheck disable=SC2086
gp_end_ranks() {
  gp_look
  [ -n "$gp_ranks" ] || return 0
  [ -z "$gp_daemons" ] || kill -STOP $gp_daemons 2>/dev/null || :
  kill -TERM $gp_ranks 2>/dev/null || :
  gp_pass
  gp_pass
  gp_count $gp_ranks
  set -- $gp_ranks
  [ -z "$gp_daemons" ] || [ "$gp_alive" -lt $# ] || kill -CONT $gp_daemons 2>/dev/null || :
  while [ "$gp_alive" -gt 0 ] && [ "$gp_left" -gt 0 ]; do
    gp_pass
    gp_count $gp_ranks
  done
}
