#include "operators/all_ops.h"

#include "operators/common/isa.h"

namespace penstock {

const OpRegistry& AllOps() {
  static const OpRegistry& all = []() -> const OpRegistry& {
    CapIsaOfKernels();
    auto& ops = *new OpRegistry();
    RegisterAllOps(ops);
    const Status status = ops.Finish();
    PENSTOCK_CHECK(status.ok(), status.ToString());
    return ops;
  }();
  return all;
}

}  // namespace penstock
