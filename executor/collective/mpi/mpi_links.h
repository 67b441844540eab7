// Links over a communicator of MPI's.
#pragma once

#include <mpi.h>

#include <memory>

#include "executor/collective/links.h"

namespace penstock::collective {

// `comm` is used by these links alone, and stays when they go: freeing one needs all its ranks.
std::unique_ptr<Links> MakeMpiLinks(MPI_Comm comm);

}  // namespace penstock::collective
