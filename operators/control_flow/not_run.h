// What the ops share that run blocks: they are declared before there is somebody who runs them.
#pragma once

#include "framework/op/kernel.h"

namespace penstock {

// Refuses when the program is compiled, before anything has run.
class BlockNotRunKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    return Unimplemented(
        "E-op-block", k.op().type(),
        ": blocks of conditions are built and transpiled, but not run yet; use layers without "
        "Switch and cond");
  }
  Status Run(KernelRun&) override { return OkStatus(); }
};

}  // namespace penstock
