# PID 1 of a worker without MPI: the ranks have the whole grace period after SIGTERM, and not torchrun's 30 s.
# The words after -- start the program.
. "${0%/*}/common.sh"
gp_is_mpi=''
. "${0%/*}/ranks.sh"

gp_end() {
  trap '' TERM
  gp_end_ranks
  # shellcheck disable=SC2086  # process numbers
  [ -z "$gp_daemons" ] || kill -CONT $gp_daemons 2>/dev/null || :
  for _ in 1 2 3 4 5; do
    kill -0 "$gp_command" 2>/dev/null || break
    sleep 1
  done
  # Not 0, whatever the ranks say: a pod that is taken away has not succeeded.
  exit 143
}
gp_command=''
trap gp_end TERM
"$@" &
gp_command=$!
gp_code=0
wait "$gp_command" || gp_code=$?
[ "$gp_code" -eq 0 ] || gp_fail "$gp_code"
exit 0
