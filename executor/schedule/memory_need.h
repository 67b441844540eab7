// Estimates a program's memory by the plan that a run would use.
//
//   PENSTOCK_ASSIGN_OR_RETURN(MemoryNeed need, MemoryNeedOf(AllOps(), main, {.batch = 64}));
//   need.Planned();   // bytes, for a batch of 64
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "executor/plan/plan.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "framework/tensor/shape.h"

namespace penstock::exec {

// Bytes.
struct MemoryNeed {
  std::size_t persistable = 0;  // scope variables: parameters, optimizer state
  std::size_t fed = 0;
  std::size_t temporaries = 0;  // if no two of them shared memory
  std::size_t arena = 0;        // of the temporaries as planned; kept ones are in own_buffers
  std::size_t own_buffers = 0;
  std::size_t workspace = 0;
  int late_ops = 0;  // ops whose result sizes depend on values; not included in the numbers above

  std::size_t Planned() const { return persistable + fed + arena + own_buffers + workspace; }
  std::size_t Unshared() const { return persistable + fed + temporaries + workspace; }
};

// The shapes of feeds.
struct FedShapes {
  Dim batch = 0;  // the unknown extent of a feed that is not in `shapes`
  std::map<std::string, Shape> shapes = {};
};

// The plan of block 0 for these feeds; runs nothing. The feeds are the non-persistable variables that the
// block reads before any op writes them.
//
// kInvalidArgument E-memory-batch: the batch is not positive, or a feed that is not in `shapes` has two
// unknown extents; E-memory-feed: a shape of a variable that is not fed, or that its declaration excludes.
// Errors of CompileBlock and MakePlan.
Result<std::shared_ptr<const Specialisation>> PlanForFeeds(const OpRegistry& ops, const Program& program,
                                                           const FedShapes& fed, const PlanOptions& options);

// The memory of that plan.
Result<MemoryNeed> MemoryNeedOf(const OpRegistry& ops, const Program& program, const FedShapes& fed);

}  // namespace penstock::exec
