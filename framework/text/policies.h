// What role programs say of bounded staleness, backup trainers, trainers with unequal batches and
// compression, for which Fluid's programs have no place: the one writer and the one reader of these keys of
// ProgramMeta::policies. Others are kept.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const JobPolicies policies, ReadPolicies(program.meta()));
//   if (policies.staleness) ...                                // 3: bounded staleness
//   const Compression how = policies.CompressionOf("w@GRAD.block0.trainer_1");
//
//   "staleness"        -> "3"
//   "backup_trainers"  -> "1"
//   "on_uneven"        -> "join"
//   "compression"      -> "w@GRAD.block0.trainer_1: two_bit 0.5, w@GRAD.block1.trainer_1: two_bit 0.5"
//
// All but the last are the same in all programs of a job. That one names the gradients that this program
// pushes, or receives, by the name that stands in the message; what is not named is not compressed.
#pragma once

#include <optional>
#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/runtime/uneven_steps.h"
#include "framework/text/compression.h"

namespace penstock {

inline constexpr char kStalenessPolicy[] = "staleness";
inline constexpr char kBackupTrainersPolicy[] = "backup_trainers";
inline constexpr char kOnUnevenPolicy[] = "on_uneven";
inline constexpr char kCompressionPolicy[] = "compression";

struct JobPolicies {
  // Asynchronous programs. Before step v a trainer's parameters have all updates of all live trainers' steps
  // below v - staleness.
  std::optional<int> staleness;
  // Synchronous programs: a step is updated with the gradients of all trainers but so many; those that come
  // late are dropped.
  int backup_trainers = 0;
  // Programs whose gradients are shares of all trainers' examples; framework/runtime/uneven_steps.h.
  OnUneven on_uneven = OnUneven::kNone;
  CompressionRules compression;  // by the name of what is pushed; no rule for all

  Compression CompressionOf(std::string_view pushed) const { return compression.Of(pushed, 0); }
  friend bool operator==(const JobPolicies&, const JobPolicies&) = default;
};

// kInvalidArgument: E-policy-value (staleness or backup_trainers is not a number from 0 on, on_uneven is none
// of its words; compression has a rule for all), E-text-syntax, E-compression-value.
Result<JobPolicies> ReadPolicies(const ProgramMeta& meta);
// Replaces these; those that are not asked for are left out.
void WritePolicies(const JobPolicies& policies, ProgramMeta& meta);

}  // namespace penstock
