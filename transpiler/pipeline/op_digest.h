// Digests of ops that do not depend on the names of variables that the front end counts out.
//
//   OpDigest digest(main);
//   digest.KeepName("fc_0.w_0", 7);             what stands for it instead of a number
//   const std::uint64_t d = digest.Of(0, op);   and of the blocks that it starts
//   digest.Knows("fc_0.tmp_0")                  an op before mentioned it, or its name is kept
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/program.h"

namespace penstock {

// Of a sequence: `digest` with `next` behind it.
std::uint64_t Chain(std::uint64_t digest, std::uint64_t next);

class OpDigest {
 public:
  // `program` must outlive it.
  explicit OpDigest(const Program& program) : program_(program) {}

  void KeepName(std::string_view name, std::uint64_t stands_for) { known_[name] = {stands_for}; }
  bool Knows(std::string_view name) const { return known_.contains(name); }
  struct Known {
    std::uint64_t number = 0;
    bool mentioned = false;  // by an op
  };
  // Kept names, and those that ops mentioned, in the order of mention.
  const ViewMap<Known>& known() const { return known_; }

  // Type, slots with the numbers of their variables, attributes. Numbers are given out on the way. The order
  // of slots counts, that of attributes does not. Attributes of the framework itself (op_role,
  // op_callstack...) and numbers that a process counts by itself are left out.
  std::uint64_t Of(int block, const Op& op);
  // Its type and attributes alone.
  std::uint64_t OfAttrs(int block, const Op& op);

 private:
  std::uint64_t OfSlots(const std::vector<Slot>& slots);
  std::uint64_t OfAttr(int block, const Attr& attr);
  std::uint64_t OfBlock(int block);
  std::uint64_t OfName(std::string_view name);

  const Program& program_;
  ViewMap<Known> known_;
  std::vector<int> inside_;  // blocks being read: one that starts itself ends there
};

// Whether an attribute says nothing of what the op computes: it is the framework's, or a number of this
// process.
bool IsOfProcess(const Op& op, std::string_view attr);

}  // namespace penstock
