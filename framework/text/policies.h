// The settings for bounded staleness, backup trainers, uneven batches, compression and rows of tables in role
// programs, for which Fluid's programs have no field. Only this file writes and reads these keys of
// ProgramMeta::policies; it leaves other keys alone.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const JobPolicies policies, ReadPolicies(program.meta()));
//   if (policies.staleness) ...                                // 3: bounded staleness
//   const Compression how = policies.CompressionOf("w@GRAD.block0.trainer_1");
//
//   "staleness"        -> "3"
//   "backup_trainers"  -> "1"
//   "on_uneven"        -> "join"
//   "rows"             -> "words: entry count 3, evict unseen 1000"
//   "compression"      -> "w@GRAD.block0.trainer_1: two_bit 0.5, w@GRAD.block1.trainer_1: two_bit 0.5"
//
// All but the last are equal in all programs of a job. "rows" names tables sharded by id. "compression" names
// the gradients that this program pushes or receives, by the name in the message; others are not compressed.
#pragma once

#include <optional>
#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/runtime/uneven_steps.h"
#include "framework/text/compression.h"
#include "framework/text/row_policy.h"

namespace penstock {

inline constexpr char kStalenessPolicy[] = "staleness";
inline constexpr char kBackupTrainersPolicy[] = "backup_trainers";
inline constexpr char kOnUnevenPolicy[] = "on_uneven";
inline constexpr char kRowsPolicy[] = "rows";
inline constexpr char kCompressionPolicy[] = "compression";

struct JobPolicies {
  // For asynchronous programs. Before step v, a trainer's parameters include all updates of all live
  // trainers' steps below v - staleness.
  std::optional<int> staleness;
  // For synchronous programs: the number of trainers whose gradients a step does not wait for; late gradients
  // are dropped.
  int backup_trainers = 0;
  // For programs whose gradients are shares of all trainers' examples; framework/runtime/uneven_steps.h.
  OnUneven on_uneven = OnUneven::kNone;
  RowPolicies rows;              // by the name of the table
  CompressionRules compression;  // by the name of the pushed variable; no rule for all

  Compression CompressionOf(std::string_view pushed) const { return compression.Of(pushed, 0); }
  friend bool operator==(const JobPolicies&, const JobPolicies&) = default;
};

// kInvalidArgument: E-policy-value (staleness or backup_trainers is not a non-negative number, on_uneven is
// none of its words, or compression has a rule without a name), E-text-syntax, E-compression-value,
// E-row-policy-value.
Result<JobPolicies> ReadPolicies(const ProgramMeta& meta);
// Writes these keys, and removes those whose policy is not set.
void WritePolicies(const JobPolicies& policies, ProgramMeta& meta);

}  // namespace penstock
