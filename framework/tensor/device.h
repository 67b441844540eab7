// Kinds of devices. Memory of another kind than kCpu is not for this process's own loads and stores.
#pragma once

namespace penstock {

enum class DeviceKind { kCpu = 0, kCuda = 1 };

}  // namespace penstock
