// Rewrites programs to use less memory and compute the same, as Fluid's memory_optimize and release_memory.
//
//   PENSTOCK_ASSIGN_OR_RETURN(MemoryRewrite less, ReuseBuffers(AllOps(), main, {.keep = {"loss"}}));
//   std::cout << less.Report();
//     d takes the buffer of a: f32[?, 256]
//     1 variable takes the buffer of another; saves 1024 bytes for each batch item
//
//   less.program            the rewritten program
//
// Variables share a buffer only if their sizes are equal in every run (with larger_buffers: known not to
// exceed it), so the reported savings hold whatever is fed.
//
// These are pure functions on a user's or a trainer's program, before or after transpile. They never touch
// variables that are sent, received, fed or kept between steps (lifetimes.h has the whole list). A variable
// that takes another's buffer loses its own name: list the variables that will be fetched in `keep`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "transpiler/memory/lifetimes.h"

namespace penstock::memory {

// The size of tensors as a fixed number of bytes plus a number of bytes for each unit of an unknown extent.
struct MemorySize {
  std::int64_t bytes = 0;
  // Keyed by the name of the unit (Extents::NameOf): "batch item", "row of words".
  std::map<std::string, std::int64_t> bytes_for_each;
  std::string ToString()
      const;  // "1024 bytes, 52 bytes for each batch item and 8 bytes for each row of words"
  friend bool operator==(const MemorySize&, const MemorySize&) = default;
};

struct ReuseOptions {
  NameSet keep;
  // Fluid's level 1: also allows a buffer that is larger than needed, of the same element type and rank. The
  // buffer's declaration then leaves extents open where its tenants differ.
  bool larger_buffers = false;
  bool skip_grads = false;  // leaves outputs of backward ops alone
};

struct MemoryRewrite {
  Program program;
  std::vector<std::string> lines;  // the changes, one entry per variable
  MemorySize saved;                // of variables that take another's buffer; empty for ReleaseBuffers
  std::string summary;
  std::string unknown_ops = {};  // ops that the registry does not know (framework/op/unknown_ops.h)
  std::string Report() const;    // all of these as text
};

// kInvalidArgument E-memory-keep: `keep` names a variable that no block declares. E-op-attr, E-op-slot: an op
// violates its schema.
Result<MemoryRewrite> ReuseBuffers(const OpRegistry& ops, const Program& in, const ReuseOptions& options);

// Inserts a delete_var after the last use of each movable temporary, one op for all that end at the same op.
// kInvalidArgument E-memory-keep as above.
Result<MemoryRewrite> ReleaseBuffers(const OpRegistry& ops, const Program& in, const NameSet& keep);

}  // namespace penstock::memory
