#include "executor/graph/specialise.h"

#include <algorithm>

#include "executor/graph/memory_plan.h"

namespace penstock {
namespace {

constexpr std::size_t kAlignment = 64;

// Lays out a kernel's workspaces one after the other. All kernels share the memory: they run one at a time.
std::vector<std::size_t> WorkspaceOffsets(const std::vector<std::size_t>& bytes, std::size_t& total) {
  std::vector<std::size_t> offsets;
  std::size_t end = 0;
  for (const std::size_t size : bytes) {
    offsets.push_back(end);
    end += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  total = std::max(total, end);
  return offsets;
}

class Specialiser {
 public:
  Specialiser(std::shared_ptr<const CompiledBlock> block, std::vector<VarInfo> known,
              const Services& services)
      : services_(services),
        known_(std::move(known)),
        place_of_(block->slots.size(), -1),
        guessed_(block->slots.size(), false),
        block_written_(block->slots.size(), false) {
    out_ = std::make_unique<Specialisation>();
    out_->block = std::move(block);
  }

  Result<std::unique_ptr<Specialisation>> Run() {
    const CompiledBlock& block = *out_->block;
    for (const int slot : block.key) out_->key.push_back(Known(slot));
    out_->steps.reserve(block.instructions.size());
    for (const Instruction& instruction : block.instructions) {
      PENSTOCK_RETURN_IF_ERROR(AddStep(instruction));
    }
    MarkRebound();
    PlacePlaces();
    return std::move(out_);
  }

 private:
  VarInfo& Known(int slot) { return known_[static_cast<std::size_t>(slot)]; }

  bool InputsAreKnown(const Instruction& instruction) {
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      const bool needs_type = NeedsType(instruction, i);
      for (const int slot : instruction.inputs[i]) {
        if (slot < 0 || Known(slot).kind != VarKind::kTensor) continue;
        const VarInfo& info = Known(slot);
        if (info.has_type ? !info.shape.IsKnown() : needs_type) return false;
      }
    }
    return true;
  }

  // Whether what is known of an input was never more than a guess: the elements of an array need not have one
  // shape, and of what has open extents some ops guess the rest. What such a guess forbids, the run may
  // allow.
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

  // The outputs as declared, of an op that only the run can tell.
  Inferred AsDeclared(const Instruction& instruction) {
    Inferred inferred;
    for (const auto& args : instruction.outputs) {
      inferred.outputs.emplace_back();
      for (const int slot : args) {
        const auto s = static_cast<std::size_t>(slot);
        inferred.outputs.back().push_back(slot < 0 ? VarInfo() : InfoOf(*out_->block->slots[s].var));
      }
    }
    return inferred;
  }

  Status AddStep(const Instruction& instruction) {
    const bool guess = ReadsGuess(instruction);
    Result<Inferred> inferring = InferInstruction(*out_->block, instruction, known_);
    if (!inferring.ok() && !guess) return std::move(inferring).status();
    const Inferred inferred = inferring.ok() ? *inferring : AsDeclared(instruction);
    Step& step = out_->steps.emplace_back();
    step.instruction = &instruction;
    step.lod_shares = inferred.lod_shares;
    step.starts_blocks = StartsBlocks(*instruction.op);
    NoteUncertain(instruction, step);
    // An op that starts blocks resolves what it reads when it runs.
    if (step.starts_blocks || (inferring.ok() && InputsAreKnown(instruction))) {
      Result<PreparedKernel> prepared = PrepareKernel(*out_->block, instruction, inferred, known_, services_);
      if (!prepared.ok() && !guess) return std::move(prepared).status();
      if (prepared.ok()) {
        step.kernel = std::move(prepared->kernel);
        step.workspaces = WorkspaceOffsets(prepared->workspaces, out_->workspace_bytes);
      }
    }
    if (step.kernel == nullptr) ++out_->late_steps;
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
      for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
        const int slot = instruction.outputs[i][j];
        if (slot < 0) continue;
        AddOutput(step, slot, inferred.outputs[i][j]);
        guessed_[static_cast<std::size_t>(slot)] = guess;
      }
    }
    for (const int slot : instruction.block_writes) {
      if (IsKnownTensor(Known(slot))) step.block_writes.push_back({slot, Known(slot)});
    }
    return OkStatus();
  }

  void NoteUncertain(const Instruction& instruction, Step& step) {
    if (step.starts_blocks || instruction.def->reads_only_some()) return;
    for (const auto& args : instruction.inputs) {
      for (const int slot : args) {
        if (slot >= 0 && block_written_[static_cast<std::size_t>(slot)]) step.uncertain.push_back(slot);
      }
    }
  }

  void AddOutput(Step& step, int slot, const VarInfo& info) {
    Known(slot) = info;
    // A block that is started makes what it writes, if it writes it.
    block_written_[static_cast<std::size_t>(slot)] = step.starts_blocks;
    if (!IsKnownTensor(info)) return;
    const SlotInfo& declared = out_->block->slots[static_cast<std::size_t>(slot)];
    step.outputs.push_back({slot, info});
    if (step.starts_blocks) return;
    if (declared.home != Home::kFrame) {
      step.scope_outputs.push_back({slot, info});
      return;
    }
    const std::size_t bytes = static_cast<std::size_t>(info.shape.Count()) * SizeOf(info.dtype);
    int& place = place_of_[static_cast<std::size_t>(slot)];
    if (place < 0) {
      place = static_cast<int>(out_->places.size());
      out_->places.push_back({slot, info.dtype, info.shape, bytes, 0, declared.kept});
      return;
    }
    Place& found = out_->places[static_cast<std::size_t>(place)];
    found.bytes = std::max(found.bytes, bytes);
    if (found.dtype != info.dtype || found.shape != info.shape) changes_type_.push_back(slot);
  }

  // A temporary that is written with several types is bound anew at each of its writes.
  void MarkRebound() {
    if (changes_type_.empty()) return;
    for (Step& step : out_->steps) {
      for (const OutputTensor& output : step.outputs) {
        const bool changes =
            std::find(changes_type_.begin(), changes_type_.end(), output.slot) != changes_type_.end();
        if (changes) step.rebound.push_back(output.slot);
      }
    }
  }

  void PlacePlaces() {
    std::vector<Lifetime> lifetimes;
    std::vector<Place*> placed;
    for (Place& place : out_->places) {
      if (place.own_buffer) continue;
      const SlotInfo& slot = out_->block->slots[static_cast<std::size_t>(place.slot)];
      lifetimes.push_back({place.bytes, slot.first_write, slot.last_use});
      placed.push_back(&place);
    }
    const MemoryPlan plan = PlanMemory(lifetimes);
    for (std::size_t i = 0; i < placed.size(); ++i) placed[i]->offset = plan.offsets[i];
    out_->arena_bytes = plan.arena_bytes;
  }

  const Services& services_;
  std::vector<VarInfo> known_;
  std::vector<int> place_of_;        // index in places by slot, -1 if it has none
  std::vector<int> changes_type_;    // slots
  std::vector<bool> guessed_;        // by slot: its shape may turn out to be another one
  std::vector<bool> block_written_;  // by slot: last written by an op that starts blocks
  std::unique_ptr<Specialisation> out_;
};

}  // namespace

Result<std::unique_ptr<Specialisation>> Specialise(std::shared_ptr<const CompiledBlock> block,
                                                   std::vector<VarInfo> known, const Services& services) {
  return Specialiser(std::move(block), std::move(known), services).Run();
}

}  // namespace penstock
