// What Fluid's memory_optimize and release_memory promise: programs that need less memory and compute the
// same.
//
//   PENSTOCK_ASSIGN_OR_RETURN(MemoryRewrite less, ReuseBuffers(AllOps(), main, {.keep = {"loss"}}));
//   std::cout << less.Report();
//     d takes the buffer of a: f32[?, 256]
//     1 variable takes the buffer of another; saves 1024 bytes for each batch item
//
// Only what is as large in every run shares a buffer, so the bytes are what is saved whatever is fed.
//   less.program
//
// Pure functions, on a user's program or on a trainer's, before or after transpile: what is sent, received,
// fed or kept between steps is never touched (lifetimes.h says what else). A variable that takes another's
// buffer is gone from the program under its own name: what will be fetched has to stand in `keep`.
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

// Sizes of tensors, apart by what they grow with: extents that are known when the program runs.
struct MemorySize {
  std::int64_t bytes = 0;
  // By what it is for each of, as extents.h names it: "batch item", "row of words".
  std::map<std::string, std::int64_t> bytes_for_each;
  std::string ToString()
      const;  // "1024 bytes, 52 bytes for each batch item and 8 bytes for each row of words"
  friend bool operator==(const MemorySize&, const MemorySize&) = default;
};

struct ReuseOptions {
  NameSet keep;
  // Fluid's level 1: also a buffer that is larger than needed, of the same element type and rank. Its
  // declaration then leaves open the extents in which its tenants differ.
  bool larger_buffers = false;
  bool skip_grads = false;  // leaves alone what ops of the backward pass write
};

struct MemoryRewrite {
  Program program;
  std::vector<std::string> lines;  // what was done, an entry a variable
  MemorySize saved;                // of variables that take another's buffer; nothing is counted for releases
  std::string summary;
  std::string Report() const;  // lines and summary
};

// kInvalidArgument E-memory-keep: `keep` names a variable that no block declares.
Result<MemoryRewrite> ReuseBuffers(const OpRegistry& ops, const Program& in, const ReuseOptions& options);

// Puts a delete_var behind the last use of each temporary that may go, one op for all that end at one place.
Result<MemoryRewrite> ReleaseBuffers(const OpRegistry& ops, const Program& in, const NameSet& keep);

}  // namespace penstock::memory
