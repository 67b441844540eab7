// Prepares one instruction for given types of its arguments: its outputs' types and its kernel. Used when a
// block is specialised, and again for a single op when a value turns out to have another shape than
// expected.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/graph/compiled_block.h"
#include "framework/op/infer_context.h"
#include "framework/op/kernel.h"
#include "framework/op/tensor_desc.h"
#include "framework/tensor/variable.h"

namespace penstock::exec {

// Describes the variable's current value, or its declaration if it is empty.
TensorDesc DescOf(const Variable& variable, const Var& declared);
// Whether `variable` holds exactly what `info` describes. Allocates nothing.
bool Holds(const Variable& variable, const TensorDesc& info);
bool Holds(const Tensor& tensor, const TensorDesc& info);
// Whether `info` is a dense tensor whose extents are all known.
bool IsKnownTensor(const TensorDesc& info);

// Whether the arguments of input slot `i` must have a type, from their declaration or at the latest when the
// op runs. False for a slot that accepts every kind.
bool NeedsType(const Instruction& instruction, std::size_t i);

// "X = fc_0.out : f32[64, 784]" for each argument of the instruction's inputs.
std::vector<std::string> FactsOf(const CompiledBlock& block, const Instruction& instruction,
                                 std::span<const TensorDesc> slots);

struct Inferred {
  std::vector<std::vector<TensorDesc>> outputs;  // in the order of instruction.outputs
  DType kernel_type = DType::kFp32;              // chooses the kernel
  std::vector<LodShare> lod_shares;
};

// `slots`: the information on each slot of the block, by index. Errors name the op.
//
// The context after shape inference: it refers to the instruction.
Result<InferContext> InferenceOf(const CompiledBlock& block, const Instruction& instruction,
                                 std::span<const TensorDesc> slots);
Result<Inferred> InferInstruction(const CompiledBlock& block, const Instruction& instruction,
                                  std::span<const TensorDesc> slots);

// An output that gets the LoD of an input when its op has run: slots.
struct LodCopy {
  int from = -1;
  int to = -1;
};
std::vector<LodCopy> LodCopiesOf(const Instruction& instruction, std::span<const LodShare> shares);
// `variables`: by slot.
void CopyLods(std::span<const LodCopy> copies, Variable* const* variables);

struct PreparedKernel {
  std::unique_ptr<Kernel> kernel;
  std::vector<std::size_t> workspaces;  // bytes of each
};

// `slots`: the state before the instruction runs. kUnimplemented E-kernel-missing: there is no kernel for
// these element types.
Result<PreparedKernel> PrepareKernel(const CompiledBlock& block, const Instruction& instruction,
                                     const Inferred& inferred, std::span<const TensorDesc> slots,
                                     const Services& services);

}  // namespace penstock::exec
