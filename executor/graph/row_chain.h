// Several ops as one instruction, which runs all of them on a few rows of their arguments, then on the next
// rows: what an op writes is in a near cache when the next op reads it, and temporaries of the chain have
// memory for these few rows only.
//
//   ops   t = elementwise_add(X=c, Y=b)     run   for rows [i, i + n):
//         r = relu(X=t)                             t' = c[i, i + n) + b
//                                                   r[i, i + n) = relu(t')
//
// The rows are those of the first dimension or, if these are too large, of the first two or more: of
// f32[8, 128, 1024], 8 rows of 512 KB or 1,024 rows of 4 KB. In the latter case the ops see f32[1, n, 1024].
//
// The ops are elementwise (OpDef::keeps_layout), so each runs on any rows alone, with the other operand of a
// broadcast whole. Results have the bytes of the ops run one after the other.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/graph/compiled_block.h"
#include "framework/op/op_def.h"
#include "framework/op/tensor_desc.h"

namespace penstock::exec {

// Calls visit(slot) for each argument that is present.
template <typename Visit>
void EachSlot(const std::vector<std::vector<int>>& arguments, const Visit& visit) {
  for (const std::vector<int>& row : arguments) {
    for (const int slot : row) {
      if (slot >= 0) visit(slot);
    }
  }
}

// What an instruction that runs by rows does with its slots.
struct RowRoles {
  Shape rows;              // the extents that count them: the first ones of each slot in `cut`
  std::vector<int> cut;    // outputs, and inputs of which it reads the rows that it computes
  std::vector<int> whole;  // other inputs
};
// Nullopt: it runs on all rows at once.
//
//   context     after inference, with the types of its arguments
//   dimensions  whose extents count the rows, at least 1
std::optional<RowRoles> RowRolesOf(const Instruction& instruction, const InferContext& context,
                                   int dimensions);

// The slots of instructions that run on the same rows.
class RowCut {
 public:
  // Whether the instruction goes with those added before. If not, nothing is added.
  bool Add(const RowRoles& roles);
  const Shape& rows() const { return rows_; }  // of rank 0: nothing was added
  bool IsCut(int slot) const;

 private:
  enum class Role { kCut, kWhole };
  bool Fits(const std::vector<int>& slots, Role role) const;
  Shape rows_;
  std::map<int, Role> roles_;
};

struct RowChain {
  explicit RowChain(std::string type) : def(std::move(type)) {}
  // The ops. Its slots are the chain's inputs, then its outputs, then temporaries that no other op names.
  CompiledBlock block;
  int inputs = 0, outputs = 0;
  int dimensions = 1;  // whose extents count the rows
  OpDef def;           // of the instruction: slots X0, X1, ... and Out0, Out1, ...
};

// The types of a chain's slots.
struct ChainTypes {
  std::vector<TensorDesc> types;
  std::vector<int> lod_from;  // by slot: the input whose LoD it has; -1: none
  RowCut cut;
  bool by_rows = true;  // false: for these types the ops run on all rows at once
};
// `inputs`: their types. Errors name the op.
Result<ChainTypes> TypesOfChain(const RowChain& chain, std::vector<TensorDesc> inputs);

// By slot of a chain: the output in whose memory a temporary lies, because an op computes that output in its
// place; -1: it has memory of its own, or is no temporary.
std::vector<int> HomesOf(const RowChain& chain, const ChainTypes& types);

// Whether an output of the chain may lie in the memory of an input: the ops that read the input run before
// those that use this memory, or compute in place there.
bool MayLieIn(const RowChain& chain, const ChainTypes& types, int output, int input);

// The op that an error about a slot of the instruction's block is about: the instruction itself or, of a
// chain, the first op that names the slot; the last op if the error is about no slot (-1).
const Instruction& OpAbout(const Instruction& instruction, int slot);

// The instruction that runs `members` of `block`, in their order, where the last one stands.
//
//   types       of the inputs that the members do not write themselves, by slot of the block
//   temporary   by slot: whether only members name it
//   dimensions  whose extents count the rows
//
// Errors name the op.
Result<Instruction> MakeChain(const CompiledBlock& block, std::span<const int> members,
                              std::span<const TensorDesc> types, const std::vector<bool>& temporary,
                              int dimensions);

}  // namespace penstock::exec
