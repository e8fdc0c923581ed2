// Ends as its first argument says: mistakes in calls of MPI, and what makes a process abort itself.
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

int main(int count, char **words) {
  const char *how = words[1];
  int rank;
  double one[64] = {0}, other[64] = {0};
  if (!strcmp(how, "before-init")) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!strcmp(how, "truncate")) {
    if (rank == 0) MPI_Send(one, 64, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(other, 4, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (!strcmp(how, "allreduce"))
    MPI_Allreduce(one, other, rank ? 4 : 64, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(how, "peer")) MPI_Send(one, 1, MPI_DOUBLE, 7, 0, MPI_COMM_WORLD);
  if (!strcmp(how, "throw") && rank == 1) throw std::runtime_error("shard 3 is empty");
  if (!strcmp(how, "free") && rank == 1) {
    void *volatile part = malloc(64);
    free(part);
    free(part);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
