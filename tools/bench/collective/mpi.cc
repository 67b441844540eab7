// Measures MPI's all-reduce of floats in the same way as bench_collective measures ours.
//
//   mpirun -n 2 bench_collective_mpi bytes...
#include <mpi.h>

#include <cstdlib>

#include "tools/bench/collective/measure.h"

namespace penstock::bench {
namespace {

class MpiReducer : public AllReducer {
 public:
  void Sum(float* values, std::size_t count) override {
    if (MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) !=
        MPI_SUCCESS) {
      std::exit(1);
    }
  }
};

void Run(int argc, char** argv) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MpiReducer group;
  for (int i = 1; i < argc; ++i) {
    const std::size_t bytes = std::strtoull(argv[i], nullptr, 10);
    double cpu = 0, of_all = 0;
    const double seconds = Measure(group, bytes, cpu);
    MPI_Reduce(&cpu, &of_all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) PrintFigure("mpi", ranks, bytes, seconds, of_all / ranks);
  }
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  penstock::bench::Run(argc, argv);
  MPI_Finalize();
}
