#include "executor/graph/specialise.h"

#include <algorithm>
#include <cstdint>

#include "executor/graph/explain.h"
#include "executor/graph/place_temporaries.h"
#include "executor/graph/row_chain.h"
#include "executor/graph/sent_values.h"
#include "executor/graph/type_table.h"

namespace penstock::exec {
namespace {

constexpr std::size_t kAlignment = 64;
// More than any machine can address, and far below the size at which sums overflow.
constexpr std::size_t kTemporaryBytesMax = std::size_t{1} << 47;

class Specialiser {
 public:
  Specialiser(std::shared_ptr<const CompiledBlock> block, std::vector<TensorDesc> known,
              const Services& services, bool in_place)
      : services_(services),
        in_place_(in_place),
        known_(std::move(known)),
        type_of_(block->slots.size(), -1),
        guessed_(block->slots.size(), false),
        block_written_(block->slots.size(), false),
        sent_(*block),
        out_(std::make_shared<Specialisation>()),
        types_(out_->types) {
    out_->block = std::move(block);
  }

  Result<Specialised> Run() {
    const CompiledBlock& block = *out_->block;
    for (const int slot : block.key) out_->key.push_back(Known(slot));
    for (const Peek& peek : block.peeks) {
      for (const auto& args : block.instructions[static_cast<std::size_t>(peek.instruction)].outputs) {
        for (const int slot : args) out_->peeked.push_back(slot < 0 ? TensorDesc() : Known(slot));
      }
    }
    out_->steps.reserve(block.instructions.size());
    kernels_.reserve(block.instructions.size());
    for (const Instruction& instruction : block.instructions) {
      PENSTOCK_RETURN_IF_ERROR(AddStep(instruction));
    }
    out_->awaits = FindAwaits(block);
    out_->leaves_pulls = LeavesPulls(block);
    for (const Await& await : out_->awaits) {
      if (static_cast<std::size_t>(await.step) < out_->steps.size())
        out_->steps[static_cast<std::size_t>(await.step)].awaits = true;
    }
    PlaceTemporaries(*out_, sent_, in_place_);
    return Specialised{out_, std::move(kernels_)};
  }

 private:
  TensorDesc& Known(int slot) { return known_[static_cast<std::size_t>(slot)]; }

  bool InputsAreKnown(const Instruction& instruction) {
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      const bool needs_type = NeedsType(instruction, i);
      for (const int slot : instruction.inputs[i]) {
        if (slot < 0 || Known(slot).kind != VarKind::kTensor) continue;
        const TensorDesc& info = Known(slot);
        if (info.has_type ? !info.shape.IsKnown() : needs_type) return false;
      }
    }
    return true;
  }

  // Whether the known type of an input is a guess: the elements of an array may differ in shape, and some ops
  // guess the extents that their inputs leave unknown. An op that fails for a guessed type may succeed in the
  // run.
  bool ReadsGuess(const Instruction& instruction) {
    for (const auto& args : instruction.inputs) {
      for (const int slot : args) {
        if (slot < 0) continue;
        if (guessed_[static_cast<std::size_t>(slot)] || Known(slot).kind == VarKind::kTensorArray)
          return true;
      }
    }
    return !InputsAreKnown(instruction);
  }

  // The declared types of the outputs, for an op whose inference must wait until it runs.
  Inferred AsDeclared(const Instruction& instruction) {
    Inferred inferred;
    for (const auto& args : instruction.outputs) {
      inferred.outputs.emplace_back();
      for (const int slot : args) {
        const auto s = static_cast<std::size_t>(slot);
        inferred.outputs.back().push_back(slot < 0 ? TensorDesc() : DescOf(*out_->block->slots[s].var));
      }
    }
    return inferred;
  }

  Status AddStep(const Instruction& instruction) {
    // The op may supply something else than it told, and the errors of what it supplies are its own.
    const bool guess = instruction.peeked || ReadsGuess(instruction);
    Result<Inferred> inferring = InferInstruction(*out_->block, instruction, known_);
    if (!inferring.ok() && !guess) return std::move(inferring).status();
    const Inferred inferred = inferring.ok() ? *inferring : AsDeclared(instruction);
    Step& step = out_->steps.emplace_back();
    step.starts_blocks = instruction.starts_blocks;
    step.of_first_place = instruction.of_first_place;
    AddLodCopies(instruction, inferred.lod_shares);
    NoteUncertain(instruction, step);
    std::unique_ptr<Kernel>& kernel = kernels_.emplace_back();
    out_->kernel_types.push_back(inferred.kernel_type);
    // An op that starts blocks resolves its inputs when it runs.
    if (step.starts_blocks || (inferring.ok() && InputsAreKnown(instruction))) {
      Result<PreparedKernel> prepared = PrepareKernel(*out_->block, instruction, inferred, known_, services_);
      if (!prepared.ok() && !guess) return std::move(prepared).status();
      if (prepared.ok()) {
        kernel = std::move(prepared->kernel);
        AddWorkspaces(prepared->workspaces);
      }
    }
    step.has_kernel = kernel != nullptr;
    if (step.has_kernel) {
      AddInputs(instruction, step);
      AddOutputTypes(inferred);
    } else {
      ++out_->steps_without_kernel;
    }
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
      for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
        const int slot = instruction.outputs[i][j];
        if (slot < 0) continue;
        PENSTOCK_RETURN_IF_ERROR(AddOutput(instruction, slot, inferred.outputs[i][j]));
        guessed_[static_cast<std::size_t>(slot)] = guess;
      }
    }
    sent_.Note(instruction);
    step.inputs_end = static_cast<std::uint32_t>(out_->inputs.size());
    step.outputs_end = static_cast<std::uint32_t>(out_->outputs.size());
    step.workspaces_end = static_cast<std::uint32_t>(out_->workspaces.size());
    step.lod_copies_end = static_cast<std::uint32_t>(out_->lod_copies.size());
    return OkStatus();
  }

  // All kernels share the memory of workspaces, because they run one at a time.
  void AddWorkspaces(const std::vector<std::size_t>& bytes) {
    out_->workspace_bytes = std::max(out_->workspace_bytes, LayOutWorkspaces(bytes, out_->workspaces));
  }

  void AddLodCopies(const Instruction& instruction, std::span<const LodShare> shares) {
    const std::vector<LodCopy> copies = LodCopiesOf(instruction, shares);
    out_->lod_copies.insert(out_->lod_copies.end(), copies.begin(), copies.end());
  }

  // The position of the type that the slot has now.
  int TypeIndexOf(int slot) {
    int& index = type_of_[static_cast<std::size_t>(slot)];
    if (index < 0) index = types_.IndexOf(Known(slot));
    return index;
  }

  // Records the input types that the kernel was prepared for. Call before AddOutput, which replaces the type
  // of an input that the op also writes.
  void AddInputs(const Instruction& instruction, Step& step) {
    step.may_lack_inputs = step.starts_blocks || instruction.def->reads_only_some();
    for (const auto& args : instruction.inputs) {
      for (const int slot : args) {
        out_->arguments.push_back(slot < 0 ? types_.IndexOf(TensorDesc()) : TypeIndexOf(slot));
        if (slot < 0) continue;
        const TensorDesc& info = Known(slot);
        if (info.kind != VarKind::kTensor || IsKnownTensor(info))
          out_->inputs.push_back({slot, out_->arguments.back()});
      }
    }
  }

  void AddOutputTypes(const Inferred& inferred) {
    for (const std::vector<TensorDesc>& row : inferred.outputs) {
      for (const TensorDesc& type : row) out_->arguments.push_back(types_.IndexOf(type));
    }
  }

  void NoteUncertain(const Instruction& instruction, Step& step) {
    if (step.starts_blocks || instruction.def->reads_only_some()) return;
    for (const auto& args : instruction.inputs) {
      for (const int slot : args) {
        if (slot < 0 || !block_written_[static_cast<std::size_t>(slot)]) continue;
        out_->uncertain.push_back({static_cast<int>(out_->steps.size()) - 1, slot});
        step.has_uncertain = true;
      }
    }
  }

  Status AddOutput(const Instruction& instruction, int slot, const TensorDesc& info) {
    Known(slot) = info;
    type_of_[static_cast<std::size_t>(slot)] = -1;
    // A nested block makes its outputs itself, and may leave some unwritten.
    block_written_[static_cast<std::size_t>(slot)] = instruction.starts_blocks;
    if (!IsKnownTensor(info)) return OkStatus();
    if (instruction.starts_blocks || instruction.peeked) return OkStatus();
    const std::size_t bytes = static_cast<std::size_t>(info.shape.Count()) * SizeOf(info.dtype);
    if (bytes > kTemporaryBytesMax || temporary_bytes_ + bytes > kTemporaryBytesMax) {
      const SlotInfo& written = out_->block->slots[static_cast<std::size_t>(slot)];
      return ExplainOp(
          FailedPrecondition("E-run-memory", "block ", out_->block->block,
                             ": not enough memory for these shapes: ", written.name, " : ", TypeText(info)),
          out_->block->program, out_->block->block, OpAbout(instruction, slot).position);
    }
    if (out_->block->slots[static_cast<std::size_t>(slot)].home == Home::kFrame) temporary_bytes_ += bytes;
    out_->outputs.push_back({.slot = slot,
                             .type = types_.IndexOf(info),
                             .in_place = Reads(instruction, slot),
                             .sent_before = sent_.NoteWrite(slot)});
    return OkStatus();
  }

  const Services& services_;
  const bool in_place_;
  std::vector<TensorDesc> known_;
  std::vector<int> type_of_;         // by slot: its present type's index in out_->types, -1 if not looked up
  std::vector<bool> guessed_;        // by slot: the run may produce another shape
  std::vector<bool> block_written_;  // by slot: last written by an op that starts blocks
  SentValues sent_;
  std::size_t temporary_bytes_ = 0;  // of all outputs that are temporaries
  const std::shared_ptr<Specialisation> out_;
  TypeTable types_;  // out_->types
  Kernels kernels_;
};

}  // namespace

bool Reads(const Instruction& instruction, int slot) {
  return std::ranges::any_of(instruction.inputs, [slot](const std::vector<int>& args) {
    return std::ranges::find(args, slot) != args.end();
  });
}

std::size_t LayOutWorkspaces(std::span<const std::size_t> bytes, std::vector<std::size_t>& offsets) {
  std::size_t end = 0;
  for (const std::size_t size : bytes) {
    offsets.push_back(end);
    end += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  return end;
}

Result<Specialised> Specialise(std::shared_ptr<const CompiledBlock> block, std::vector<TensorDesc> known,
                               const Services& services, bool in_place) {
  return Specialiser(std::move(block), std::move(known), services, in_place).Run();
}

}  // namespace penstock::exec
