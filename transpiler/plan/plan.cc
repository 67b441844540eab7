#include "transpiler/plan/plan.h"

#include "framework/base/hash.h"

namespace penstock::plan {

std::vector<SliceRef> PlacementPlan::SlicesOn(int pserver) const {
  std::vector<SliceRef> refs;
  for (const int param : send_order) {
    const std::vector<Slice>& slices = params[Index(param)].slices;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices[i].pserver == pserver) refs.push_back({param, static_cast<int>(i)});
    }
  }
  return refs;
}

std::vector<std::string> PlacementPlan::AddressesOf(const ParamPlacement& param) const {
  std::vector<std::string> addresses;
  for (const Slice& slice : param.slices) addresses.push_back(pservers[Index(slice.pserver)]);
  return addresses;
}

std::vector<std::string> PlacementPlan::SendAddressesOf(const ParamPlacement& param, int trainer) const {
  std::vector<std::string> addresses;
  for (const Slice& slice : param.slices) {
    addresses.push_back(
        pservers[Index(slice.sent_to.empty() ? slice.pserver : slice.sent_to[Index(trainer)])]);
  }
  return addresses;
}

std::uint64_t Fingerprint(const PlacementPlan& plan) { return Fnv1a64(PrintPlan(plan)); }

}  // namespace penstock::plan
