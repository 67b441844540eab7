// Kinds of devices. Only memory of kind kCpu may be accessed by this process's own loads and stores.
#pragma once

namespace penstock {

enum class DeviceKind { kCpu = 0, kCuda = 1 };

}  // namespace penstock
