// The services of a process for a plan that never runs, so that kernels which need other processes can be
// prepared: calls that a run would make return an error.
//
//   PlanningServices planning(ops);
//   MakePlan(ops, block, known, planning.services(), options);
#pragma once

#include <memory>

#include "framework/op/op_registry.h"
#include "framework/runtime/services.h"

namespace penstock::exec {

class PlanningServices {
 public:
  explicit PlanningServices(const OpRegistry& ops);
  ~PlanningServices();
  PlanningServices(const PlanningServices&) = delete;
  PlanningServices& operator=(const PlanningServices&) = delete;

  const Services& services() const;

 private:
  struct Stand;
  std::unique_ptr<Stand> stand_;
};

}  // namespace penstock::exec
