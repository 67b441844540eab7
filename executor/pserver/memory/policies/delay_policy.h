// DC-ASGD: the block corrects a trainer's gradient by what that trainer has read of the chunk (backups.h).
//
//   DelayPolicy::TakeOver(served, program);              // once per param, before its chunks are made
//   DelayPolicy::Declare(served, *chunk.scope);          // in each chunk, before its other variables
//   PENSTOCK_ASSIGN_OR_RETURN(chunk.policy, DelayPolicy::Make(served, *chunk.scope, chunk.param));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "executor/pserver/memory/chunk_policy.h"
#include "executor/pserver/memory/policies/backups.h"
#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/roles/pserver_facts.h"
#include "framework/tensor/scope.h"

namespace penstock::pserver {

class DelayPolicy final : public ChunkPolicy {
 public:
  // Takes the variable that holds the number of the gradient's trainer out of the block, which then finds it
  // in its chunk's scope.
  static void TakeOver(const roles::ServedParam& served, Program& program);
  static void Declare(const roles::ServedParam& served, Scope& chunk);
  // `chunk` has the chunk's rows of the backup variables. kFailedPrecondition E-server-startup: one has no
  // value, or of another shape than `param`, the chunk's rows of the parameter.
  static Result<std::unique_ptr<ChunkPolicy>> Make(const roles::ServedParam& served, const Scope& chunk,
                                                   const Tensor& param);

  explicit DelayPolicy(Backups backups) : backups_(std::move(backups)) {}

  void Begin(const Tensor& value) override { backups_.Reset(value); }
  void Merge(int trainer) override { backups_.SetWhose(trainer); }
  std::optional<Earlier> Read(int trainer, std::uint64_t version, const Tensor& now,
                              std::uint64_t updates) override;

 private:
  Backups backups_;
};

}  // namespace penstock::pserver
