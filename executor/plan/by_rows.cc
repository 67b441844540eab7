#include "executor/plan/by_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "executor/graph/infer.h"
#include "executor/graph/row_chain.h"
#include "executor/plan/block_uses.h"
#include "executor/plan/replace_steps.h"

namespace penstock::exec {
namespace {

// What a result must have for the next op to join. Smaller ones stay in caches until the next op reads them,
// and calls of kernels for parts of the rows then cost more than they save.
constexpr std::size_t kLinkBytes = std::size_t{1} << 20;
// Rows of more bytes, of all arguments of the chain, do not stay in a cache of the core.
constexpr std::size_t kRowBytesMax = std::size_t{1} << 19;
// The most dimensions whose extents count the rows.
constexpr int kDimensionsMax = 3;
// Bounds the time that the pass takes, and the length of an instruction's name.
constexpr std::size_t kMembersMax = 16;

std::size_t BytesOf(const TensorDesc& type) {
  return IsKnownTensor(type) ? static_cast<std::size_t>(type.shape.Count()) * SizeOf(type.dtype) : 0;
}

// An instruction that may be part of a chain.
struct Candidate {
  std::array<std::optional<RowRoles>, kDimensionsMax>
      roles;                        // by the number of dimensions that count rows, - 1
  std::map<int, TensorDesc> types;  // by slot
  const std::optional<RowRoles>& Roles(int dimensions) const {
    return roles[static_cast<std::size_t>(dimensions) - 1];
  }
};

// Instructions that will be one.
struct FoundChain {
  std::vector<int> members;  // in the order of the block
  int dimensions = 1;
};

class RowChains {
 public:
  RowChains(const CompiledBlock& block, std::span<const TensorDesc> known)
      : block_(block),
        uses_(block),
        types_(known.begin(), known.end()),
        candidates_(block.instructions.size()),
        taken_(block.instructions.size(), false),
        joined_(block.instructions.size()) {}

  std::vector<FoundChain> Find() {
    for (int i = 0; i < uses_.size(); ++i) AddCandidate(i);
    std::vector<FoundChain> found;
    for (int i = 0; i < uses_.size(); ++i) {
      FoundChain longest;
      for (int dimensions = 1; dimensions <= kDimensionsMax; ++dimensions) {
        std::vector<int> members = ChainFrom(i, dimensions);
        if (members.size() > longest.members.size()) longest = {std::move(members), dimensions};
      }
      if (longest.members.size() < 2) continue;
      const int last = longest.members.back();
      for (const int member : longest.members) {
        taken_[static_cast<std::size_t>(member)] = true;
        if (member != last) joined_[static_cast<std::size_t>(last)].push_back(member);
      }
      found.push_back(std::move(longest));
    }
    return found;
  }

  // The instruction that runs a chain.
  Result<Instruction> Make(const FoundChain& chain) const {
    std::vector<TensorDesc> types(block_.slots.size());
    std::vector<bool> temporary(block_.slots.size(), false);
    for (const int member : chain.members) {
      for (const auto& [slot, type] : CandidateAt(member).types) types[static_cast<std::size_t>(slot)] = type;
      EachSlot(uses_.At(member).outputs, [&](int slot) {
        temporary[static_cast<std::size_t>(slot)] = IsTemporary(slot, chain.members);
      });
    }
    return MakeChain(block_, chain.members, types, temporary, chain.dimensions);
  }

  const BlockUses& uses() const { return uses_; }

 private:
  // Whether only members of the chain name the slot.
  bool IsTemporary(int slot, const std::vector<int>& chain) const {
    const auto is_member = [&](int user) { return std::ranges::find(chain, user) != chain.end(); };
    return uses_.IsPrivate(slot) && is_member(uses_.Writers(slot).front()) &&
           std::ranges::all_of(uses_.Readers(slot), is_member);
  }
  const Candidate& CandidateAt(int i) const { return *candidates_[static_cast<std::size_t>(i)]; }
  std::size_t BytesAt(int instruction, int slot) const {
    return BytesOf(CandidateAt(instruction).types.at(slot));
  }

  // Call for all instructions in their order: it keeps the types that slots have.
  void AddCandidate(int i) {
    const Instruction& instruction = uses_.At(i);
    const Result<InferContext> inferred = InferenceOf(block_, instruction, types_);
    Candidate candidate;
    std::map<int, TensorDesc>& types = candidate.types;
    EachSlot(instruction.inputs, [&](int slot) { types[slot] = types_[static_cast<std::size_t>(slot)]; });
    std::size_t named = types.size();
    bool temporaries = true;
    for (std::size_t r = 0; r < instruction.outputs.size(); ++r) {
      for (std::size_t j = 0; j < instruction.outputs[r].size(); ++j) {
        const int slot = instruction.outputs[r][j];
        if (slot < 0) continue;
        const SlotInfo& info = block_.slots[static_cast<std::size_t>(slot)];
        types[slot] = inferred.ok() ? inferred->outputs()[r][j] : DescOf(*info.var);
        types_[static_cast<std::size_t>(slot)] = types[slot];
        temporaries &= info.home == Home::kFrame;
        ++named;
      }
    }
    if (!inferred.ok() || !temporaries || types.size() != named) return;
    if (std::ranges::none_of(types, [](const auto& of) { return BytesOf(of.second) >= kLinkBytes; })) return;
    bool has_rows = false;
    for (int dimensions = 1; dimensions <= kDimensionsMax; ++dimensions) {
      std::optional<RowRoles> roles = RowRolesOf(instruction, *inferred, dimensions);
      if (!roles || roles->rows.Count() < 2) continue;
      candidate.roles[static_cast<std::size_t>(dimensions) - 1] = std::move(roles);
      has_rows = true;
    }
    if (has_rows) candidates_[static_cast<std::size_t>(i)] = std::move(candidate);
  }

  // The members of the chain that begins with `first`, by rows of so many dimensions.
  std::vector<int> ChainFrom(int first, int dimensions) const {
    std::vector<int> chain;
    RowCut cut;
    std::map<int, std::size_t> bytes;  // by slot that the chain names
    for (int next = first; next >= 0 && chain.size() < kMembersMax; next = NextOf(chain)) {
      if (!IsFree(next)) break;
      const std::optional<RowRoles>& roles = CandidateAt(next).Roles(dimensions);
      if (!roles || !cut.Add(*roles)) break;
      const bool follows = chain.empty() || (IsLinked(chain, *roles, next) && !WritesAgain(next, bytes) &&
                                             !Delays(chain, next));
      if (!follows) break;
      for (const auto& [slot, type] : CandidateAt(next).types) bytes.emplace(slot, BytesOf(type));
      std::vector<int> longer = chain;
      longer.push_back(next);
      if (BytesOfRow(longer, cut, bytes) > kRowBytesMax || !uses_.CanMove(longer, next, joined_)) break;
      chain = std::move(longer);
    }
    return chain;
  }
  bool IsFree(int i) const {
    return candidates_[static_cast<std::size_t>(i)].has_value() && !taken_[static_cast<std::size_t>(i)];
  }
  // Of all arguments of the chain.
  std::size_t BytesOfRow(const std::vector<int>& chain, const RowCut& cut,
                         const std::map<int, std::size_t>& bytes) const {
    std::size_t sum = 0;
    for (const auto& [slot, size] : bytes) {
      if (cut.IsCut(slot) && !IsTemporary(slot, chain))
        sum += size / static_cast<std::size_t>(cut.rows().Count());
    }
    return sum;
  }

  // The first instruction after the chain that reads a result of it; -1: none.
  int NextOf(const std::vector<int>& chain) const {
    int next = -1;
    for (const int member : chain) {
      EachSlot(uses_.At(member).outputs, [&](int slot) {
        const std::vector<int>& readers = uses_.Readers(slot);
        const auto reader = std::ranges::upper_bound(readers, chain.back());
        if (reader != readers.end() && (next < 0 || *reader < next)) next = *reader;
      });
    }
    return next;
  }

  // `roles`: of the instruction `next`.
  bool IsLinked(const std::vector<int>& chain, const RowRoles& roles, int next) const {
    return std::ranges::any_of(roles.cut, [&](int slot) {
      if (BytesAt(next, slot) < kLinkBytes) return false;
      return std::ranges::any_of(chain, [&](int member) {
        bool writes = false;
        EachSlot(uses_.At(member).outputs, [&](int written) { writes |= written == slot; });
        return writes;
      });
    });
  }
  // Whether inputs would wait in memory for `next`, longer than without the chain, that are larger than the
  // results which wait without it.
  bool Delays(const std::vector<int>& chain, int next) const {
    if (next == chain.back() + 1) return false;
    std::map<int, std::size_t> inputs, results;
    for (const int member : chain) {
      EachSlot(uses_.At(member).outputs, [&](int slot) { results[slot] = BytesAt(member, slot); });
      EachSlot(uses_.At(member).inputs, [&](int slot) {
        const bool needed = uses_.Readers(slot).back() > chain.back();
        if (block_.slots[static_cast<std::size_t>(slot)].home == Home::kFrame && !needed)
          inputs[slot] = BytesAt(member, slot);
      });
    }
    std::size_t waiting = 0, without = 0;
    for (const auto& [slot, bytes] : inputs) waiting += results.contains(slot) ? 0 : bytes;
    for (const auto& [slot, bytes] : results)
      without += !uses_.Readers(slot).empty() && uses_.Readers(slot).back() > chain.back() ? bytes : 0;
    return waiting > without;
  }
  // Whether an output of the instruction is a slot of the chain.
  bool WritesAgain(int next, const std::map<int, std::size_t>& slots) const {
    bool found = false;
    EachSlot(uses_.At(next).outputs, [&](int slot) { found |= slots.contains(slot); });
    return found;
  }

  const CompiledBlock& block_;
  const BlockUses uses_;
  std::vector<TensorDesc> types_;                     // by slot: after the instructions so far
  std::vector<std::optional<Candidate>> candidates_;  // by instruction
  std::vector<bool> taken_;                           // by instruction: a member of a chain
  std::vector<std::vector<int>> joined_;              // by instruction: members that will stand there
};

// Whether results of two elementwise ops may be large: by their declarations, where the most elements that a
// variable is known to have stand for unknown extents. It saves the inference of programs of small tensors.
bool MayHaveLinks(const CompiledBlock& block, std::span<const TensorDesc> known) {
  double most = 1;
  for (const TensorDesc& type : known) {
    if (IsKnownTensor(type)) most = std::max(most, static_cast<double>(type.shape.Count()));
  }
  int large = 0;
  for (const Instruction& one : block.instructions) {
    if (!one.def->keeps_layout()) continue;
    bool found = false;
    EachSlot(one.outputs, [&](int slot) {
      const TensorDesc type = DescOf(*block.slots[static_cast<std::size_t>(slot)].var);
      double bytes = static_cast<double>(SizeOf(type.dtype)) * (type.shape.IsKnown() ? 1 : most);
      for (const Dim extent : type.shape.dims()) bytes *= static_cast<double>(std::max<Dim>(extent, 1));
      found |= bytes >= static_cast<double>(kLinkBytes);
    });
    large += found ? 1 : 0;
  }
  return large >= 2;
}

}  // namespace

std::shared_ptr<const CompiledBlock> RunByRows(const std::shared_ptr<const CompiledBlock>& block,
                                               std::span<const TensorDesc> known) {
  if (!MayHaveLinks(*block, known)) return block;
  RowChains finder(*block, known);
  BlockWithFewerSteps out(*block, finder.uses());
  bool found = false;
  for (const FoundChain& chain : finder.Find()) {
    Result<Instruction> made = finder.Make(chain);
    if (!made.ok()) continue;
    out.Replace(chain.members, chain.members.back(), *std::move(made));
    found = true;
  }
  return found ? out.Write() : block;
}

}  // namespace penstock::exec
