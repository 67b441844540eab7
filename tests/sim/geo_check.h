// Checks a geo-SGD job that was simulated, over all starts of the job: every update of a server is a delta
// that a trainer has sent, applied once; and after each step, every trainer has the values that the reference
// computes from the versions that it received.
//
//   CheckGeo({&job});
//   CheckGeo({&killed, &continued});
#pragma once

#include <cstring>
#include <vector>

#include "tests/sim/geo_job.h"

namespace penstock::test {

inline bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void CheckGeo(const std::vector<GeoJob*>& starts);

}  // namespace penstock::test
