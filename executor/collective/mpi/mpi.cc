#include "executor/collective/mpi/mpi.h"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "executor/collective/group/queued_group.h"
#include "executor/collective/mpi/mpi_links.h"
#include "executor/collective/ring/ring_backend.h"

namespace penstock::collective {
namespace {

void FinalizeMpi() {
  int ended = 0;
  if (MPI_Finalized(&ended) == MPI_SUCCESS && ended == 0) MPI_Finalize();
}

Result<MpiPlace> StartMpi() {
  constexpr char kBackend[] = "E-collective-mpi";
  int begun = 0, threads = MPI_THREAD_SINGLE;
  MPI_Initialized(&begun);
  if (begun != 0) {
    MPI_Query_thread(&threads);
  } else {
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads) != MPI_SUCCESS)
      return FailedPrecondition(kBackend, "MPI does not start in this process");
    std::atexit(FinalizeMpi);
  }
  if (threads < MPI_THREAD_MULTIPLE) {
    return FailedPrecondition(kBackend, "MPI allows calls from one thread only (level ", threads,
                              ", not MPI_THREAD_MULTIPLE)");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MpiPlace place;
  MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &place.size);
  return place;
}

Status CheckMpiRanks(const std::vector<int>& ranks, const MpiPlace& place) {
  const bool mine = std::find(ranks.begin(), ranks.end(), place.rank) != ranks.end();
  const bool fit =
      std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return rank >= 0 && rank < place.size; });
  const bool once = std::set<int>(ranks.begin(), ranks.end()).size() == ranks.size();
  if (mine && fit && once) return OkStatus();
  return InvalidArgument("E-collective-size", "a group over MPI of ranks ", Join(ranks, ", "),
                         ": they must be different ones of 0 to ", place.size - 1, ", among them ",
                         place.rank);
}

}  // namespace

Result<MpiPlace> PlaceInMpi() {
  static const Result<MpiPlace> place = StartMpi();
  return place;
}

Result<std::unique_ptr<CollectiveGroup>> MakeMpiGroup(const MpiRanks& ranks) {
  PENSTOCK_ASSIGN_OR_RETURN(const MpiPlace place, PlaceInMpi());
  PENSTOCK_RETURN_IF_ERROR(CheckMpiRanks(ranks.ranks, place));
  MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, static_cast<int>(ranks.ranks.size()), ranks.ranks.data(), &members);
  constexpr int kMostTag = 32767;
  const int error = MPI_Comm_create_group(MPI_COMM_WORLD, members, ranks.number % kMostTag, &comm);
  MPI_Group_free(&members);
  MPI_Group_free(&world);
  if (error != MPI_SUCCESS || comm == MPI_COMM_NULL)
    return Unavailable("E-collective-join", "MPI cannot join ranks ", Join(ranks.ranks, ", "));
  return std::unique_ptr<CollectiveGroup>(std::make_unique<QueuedGroup>(
      std::make_unique<RingBackend>("mpi", MakeMpiLinks(comm),
                                    RingOptions{.report_after = ranks.report_after}),
      ranks.trace_name));
}

}  // namespace penstock::collective
