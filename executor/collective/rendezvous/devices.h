// The GPUs that the environment assigns to this process.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const auto devices, ChooseDevices(ProcessEnvironment()));
//
// CUDA_VISIBLE_DEVICES lists the devices that the process sees, in order, up to the first invalid entry
// ("-1"); FLAGS_selected_gpus selects some of these by position, as set by Fluid's launcher and ours.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/collective/rendezvous/environment.h"
#include "framework/base/status.h"

namespace penstock::rendezvous {

struct ChosenDevice {
  int ordinal = 0;    // CUDA's number of it in this process
  std::string named;  // its entry in CUDA_VISIBLE_DEVICES: "3", "GPU-8932f937"; without that, the ordinal
};

// The devices in the order of FLAGS_selected_gpus; without it, all of CUDA_VISIBLE_DEVICES; nullopt if
// neither is set: any device may be used. Empty: no device may be used. kInvalidArgument E-rendezvous-device:
// not a number, not visible, or listed twice.
Result<std::optional<std::vector<ChosenDevice>>> ChooseDevices(const Environment& environment);

// The device of a process that sees `visible` devices and is rank number `place` on its host (from 0): the
// one that the environment selects, or, of several, the one at its position. kInvalidArgument
// E-rendezvous-device: as above; or there is none, or there are more ranks than devices.
Result<int> DeviceOfRank(const Environment& environment, int place, int visible);

}  // namespace penstock::rendezvous
