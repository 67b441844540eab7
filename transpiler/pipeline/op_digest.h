// Digests of ops that do not depend on the names of variables that the front end generates by counting.
//
//   OpDigest digest(main);
//   digest.KeepName("fc_0.w_0", 7);             represent this variable by 7 instead of its position
//   const std::uint64_t d = digest.Of(0, op);   digest of the op and of the blocks that it starts
//   digest.Knows("fc_0.tmp_0")                  whether an earlier op mentioned it or its name is kept
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/program.h"

namespace penstock {

// Extends the digest of a sequence by `next`.
std::uint64_t Chain(std::uint64_t digest, std::uint64_t next);

class OpDigest {
 public:
  // `program` must outlive it.
  explicit OpDigest(const Program& program) : program_(program) {}

  void KeepName(std::string_view name, std::uint64_t stands_for) { known_[name] = {stands_for}; }
  bool Knows(std::string_view name) const { return known_.contains(name); }
  struct Known {
    std::uint64_t number = 0;
    bool mentioned = false;  // whether an op mentioned it
  };
  // Kept names and names that ops mentioned, numbered in the order of mention.
  const ViewMap<Known>& known() const { return known_; }

  // The digest of the op's type, slots with the numbers of their variables, and attributes. Assigns numbers
  // to new variables. The order of slots counts, the order of attributes does not. Leaves out the framework's
  // own attributes (op_role, op_callstack...) and numbers that differ between processes.
  std::uint64_t Of(int block, const Op& op);
  // The digest of its type and attributes only.
  std::uint64_t OfAttrs(int block, const Op& op);

 private:
  std::uint64_t OfSlots(const std::vector<Slot>& slots);
  std::uint64_t OfAttr(int block, const Attr& attr);
  std::uint64_t OfBlock(int block);
  std::uint64_t OfName(std::string_view name);

  const Program& program_;
  ViewMap<Known> known_;
  std::vector<int> inside_;  // blocks being read, to stop at a block that starts itself
};

// Whether an attribute does not affect what the op computes: it is the framework's, or a number that differs
// between processes.
bool IsOfProcess(const Op& op, std::string_view attr);

}  // namespace penstock
