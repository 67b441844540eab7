// Bindings for the launcher, which decides from which checkpoint a job continues.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/folder.h"
#include "python/src/bind.h"
#include "python/src/errors.h"

namespace penstock::python {
namespace {

// None if the folder has no checkpoint at all; an error if none is whole.
std::optional<std::uint64_t> NewestCheckpoint(const std::string& folder) {
  return Take(checkpoint::NewestWhole(SystemDisk(), folder));
}

// The steps of the checkpoints in the folder, whole or not.
std::vector<std::uint64_t> CheckpointSteps(const std::string& folder) {
  std::vector<std::uint64_t> steps;
  for (const checkpoint::Found& found : Take(checkpoint::FindCheckpoints(SystemDisk(), folder)))
    steps.push_back(found.step);
  return steps;
}

}  // namespace

void BindCheckpoints(pybind11::module_& m) {
  m.def("newest_checkpoint", &NewestCheckpoint);
  m.def("checkpoint_steps", &CheckpointSteps);
}

}  // namespace penstock::python
