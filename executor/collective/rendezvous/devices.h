// The GPUs that the environment gives to this process.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const auto devices, ChooseDevices(ProcessEnvironment()));
//
// CUDA_VISIBLE_DEVICES lists what the process sees, in its order, up to the first entry that is none ("-1");
// FLAGS_selected_gpus lists which of these it uses, counted among them, as Fluid's launcher and ours set it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/collective/rendezvous/environment.h"
#include "framework/base/status.h"

namespace penstock::rendezvous {

struct ChosenDevice {
  int ordinal = 0;    // what CUDA calls it in this process
  std::string named;  // by CUDA_VISIBLE_DEVICES: "3", "GPU-8932f937"; the ordinal without it
};

// In the order of FLAGS_selected_gpus; without it, all that CUDA_VISIBLE_DEVICES lists; nothing if neither is
// set: any device may be used. Empty: none may be.
// kInvalidArgument E-rendezvous-device: no number, not visible, or listed twice.
Result<std::optional<std::vector<ChosenDevice>>> ChooseDevices(const Environment& environment);

// The ordinal of the one device of a process that sees `visible` devices and is the `place`-th rank of its
// host (from 0): the only one that the environment gives it, or of all that it may use that of its place.
// kInvalidArgument E-rendezvous-device: as above; there is none, or there are more ranks than devices.
Result<int> DeviceOfRank(const Environment& environment, int place, int visible);

}  // namespace penstock::rendezvous
