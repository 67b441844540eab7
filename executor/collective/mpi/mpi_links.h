// Links over an MPI communicator.
#pragma once

#include <mpi.h>

#include <memory>

#include "executor/collective/ring/links.h"

namespace penstock::collective {

// Only these links may use `comm`. They do not free it, because freeing needs all its ranks.
std::unique_ptr<Links> MakeMpiLinks(MPI_Comm comm);

}  // namespace penstock::collective
