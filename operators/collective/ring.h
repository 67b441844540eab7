// What the collective ops share: they all need a communicator.
#pragma once

#include "framework/op/kernel.h"

namespace penstock {

// Stands for the kernels of ops on rings. Refuses when the program is compiled, before anything has run.
class NoCommunicatorKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    return Unimplemented("E-comm-ring", k.op().type(),
                         ": this executor has no communicator; transpile with mode=\"pserver\"");
  }
  Status Run(KernelRun&) override { return OkStatus(); }
};

}  // namespace penstock
