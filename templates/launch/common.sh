# What the launch scripts share: their options, and how a container ends. launcher.sh, worker.sh and
# program.sh begin with it. All names begin with gp_, so that no variable of the job changes on its way to
# the program.
#
#   --mpi=openmpi|hydra   how the launcher lists hosts and calls mpirun
#   --workers=N           workers of the plan
#   --grace=SECONDS       time the ranks have after SIGTERM
#   --hold=SECONDS        how long a failed container stays: a worker that was taken away has to fail first
#   --wait=SECONDS        limit for a name to resolve, for MPI to reach all workers, and for the preflight
#   --ssh-wait=SECONDS    the launcher starts together with the workers: limit for each to answer by SSH
#   --setup=FILE          a file of the image that sets up its MPI
#   --ranks               the launcher has ranks of its own
#   --hosts-in=VARIABLE   variable that names Hydra's list of hosts, where the operator sets a wrong one
#   --unset="NAME ..."    variables that ranks on other pods must not get from the launcher
#   --deepspeed="NAME ..."  variables that DeepSpeed reads from a file
#   --preflight=N         the first N words after -- are mpirun's words for the preflight
#   --own="NAME ..."      variables of this pod alone, for the sessions of its SSH server
#   --given="NAME ..."    the same, where a webhook has set them
#   --keep-until=END:DAY  a failed container is kept until then: seconds since 1970, and the day in words
#   --                    the rest is the program
gp_mpi='' gp_workers=0 gp_grace=120 gp_hold=0 gp_wait=300 gp_ssh_wait=0 gp_setup='' gp_has_ranks=''
gp_hosts_in='' gp_unset='' gp_deepspeed='' gp_preflight=0 gp_own='' gp_given='' gp_keep=''
while [ $# -gt 0 ]; do
  case $1 in
  --mpi=*) gp_mpi=${1#*=} ;;
  --workers=*) gp_workers=${1#*=} ;;
  --grace=*) gp_grace=${1#*=} ;;
  --hold=*) gp_hold=${1#*=} ;;
  --wait=*) gp_wait=${1#*=} ;;
  --ssh-wait=*) gp_ssh_wait=${1#*=} ;;
  --setup=*) gp_setup=${1#*=} ;;
  --ranks) gp_has_ranks=yes ;;
  --hosts-in=*) gp_hosts_in=${1#*=} ;;
  --unset=*) gp_unset=${1#*=} ;;
  --deepspeed=*) gp_deepspeed=${1#*=} ;;
  --preflight=*) gp_preflight=${1#*=} ;;
  --own=*) gp_own=${1#*=} ;;
  --given=*) gp_given=${1#*=} ;;
  --keep-until=*) gp_keep=${1#*=} ;;
  --)
    shift
    break
    ;;
  *)
    echo "gangplan: the launch script has no option $1" >&2
    exit 2
    ;;
  esac
  shift
done

# A container that has failed is started again, and then does nothing: with it the pod stays, and what it
# mounts.
if [ -n "$gp_keep" ]; then
  if [ -e /dev/shm/gangplan-started ]; then
    trap 'exit 143' TERM
    echo "gangplan: the program has failed; this pod is kept until ${gp_keep#*:} (UTC) or the run's timeout, and kubectl logs --previous shows why it failed (docs/debug.md)" >&2
    while [ "$(date +%s)" -lt "${gp_keep%%:*}" ]; do
      sleep 30 &
      wait $! || :
    done
    exit 1
  fi
  : >/dev/shm/gangplan-started || exit 1
fi

# A worker that is taken away ends the command here as well. That it was taken away uses up no retry, but is
# seen a little later than this end: JobSet and the Job go by what has failed when they look. SIGTERM says
# that they did.
gp_fail() {
  gp_code=$1
  [ "$gp_hold" -gt 0 ] || exit "$gp_code"
  trap '' USR1
  trap 'exit "$gp_code"' TERM
  sleep "$gp_hold" &
  wait $! || :
  exit "$gp_code"
}

gp_left=$gp_grace
gp_pass() {
  sleep 1
  gp_left=$((gp_left - 1))
}
