#include "executor/graph/specialise.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "executor/graph/explain.h"
#include "executor/graph/in_place.h"
#include "executor/graph/memory_plan.h"
#include "framework/base/flat_index.h"

namespace penstock::exec {
namespace {

constexpr std::size_t kAlignment = 64;
// More than any machine can address, and far below the size at which sums overflow.
constexpr std::size_t kTemporaryBytesMax = std::size_t{1} << 47;

std::uint32_t HashOf(const TensorDesc& type) {
  const Dims dims = type.shape.dims();
  const std::string_view bytes(reinterpret_cast<const char*>(dims.data()), dims.size_bytes());
  return FlatHash(bytes) ^ (static_cast<std::uint32_t>(type.dtype) << 16) ^
         static_cast<std::uint32_t>(type.kind);
}

bool IsSame(const TensorDesc& a, const TensorDesc& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.lod_level == b.lod_level && a.has_type == b.has_type &&
         a.dtype_is_loose == b.dtype_is_loose && a.shape == b.shape;
}

class Specialiser {
 public:
  Specialiser(std::shared_ptr<const CompiledBlock> block, std::vector<TensorDesc> known,
              const Services& services, bool in_place)
      : services_(services),
        in_place_(in_place),
        known_(std::move(known)),
        type_of_(block->slots.size(), -1),
        place_of_(block->slots.size(), -1),
        view_of_(block->slots.size(), -1),
        guessed_(block->slots.size(), false),
        block_written_(block->slots.size(), false),
        sent_(block->slots.size(), false),
        unwritten_since_sent_(block->slots.size(), false),
        whole_sent_(block->slots.size(), false) {
    out_ = std::make_shared<Specialisation>();
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
    for (const Await& await : out_->awaits) {
      if (static_cast<std::size_t>(await.step) < out_->steps.size())
        out_->steps[static_cast<std::size_t>(await.step)].awaits = true;
    }
    for (const RowGroup& group : block.row_groups) AddViews(group);
    PlaceOutputs();
    PlacePlaces();
    return Specialised{std::move(out_), std::move(kernels_)};
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
    if (instruction.def->effects().MayHoldArguments()) NoteSent(instruction);
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

  // The position of a type among the specialisation's.
  int TypeIndex(const TensorDesc& type) {
    const std::uint32_t hash = HashOf(type);
    const std::int64_t found =
        type_index_.Find(hash, [&](std::size_t at) { return IsSame(out_->types[at], type); });
    if (found != FlatIndex::kAbsent) return static_cast<int>(found);
    type_index_.Add(hash, out_->types.size());
    out_->types.push_back(type);
    return static_cast<int>(out_->types.size()) - 1;
  }

  // The position of the type that the slot has now.
  int TypeIndexOf(int slot) {
    int& index = type_of_[static_cast<std::size_t>(slot)];
    if (index < 0) index = TypeIndex(Known(slot));
    return index;
  }

  void NoteSent(const Instruction& instruction) {
    for (const auto& args : instruction.inputs) {
      for (const int slot : args) {
        if (slot < 0) continue;
        sent_[static_cast<std::size_t>(slot)] = true;
        unwritten_since_sent_[static_cast<std::size_t>(slot)] = true;
        const int whole = out_->block->slots[static_cast<std::size_t>(slot)].view_of;
        if (whole >= 0) whole_sent_[static_cast<std::size_t>(whole)] = true;
      }
    }
  }

  // Records the input types that the kernel was prepared for. Call before AddOutput, which replaces the type
  // of an input that the op also writes.
  void AddInputs(const Instruction& instruction, Step& step) {
    step.may_lack_inputs = step.starts_blocks || instruction.def->reads_only_some();
    for (const auto& args : instruction.inputs) {
      for (const int slot : args) {
        out_->arguments.push_back(slot < 0 ? TypeIndex(TensorDesc()) : TypeIndexOf(slot));
        if (slot < 0) continue;
        const TensorDesc& info = Known(slot);
        if (info.kind != VarKind::kTensor || IsKnownTensor(info))
          out_->inputs.push_back({slot, out_->arguments.back()});
      }
    }
  }

  void AddOutputTypes(const Inferred& inferred) {
    for (const std::vector<TensorDesc>& row : inferred.outputs) {
      for (const TensorDesc& type : row) out_->arguments.push_back(TypeIndex(type));
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
          out_->block->program, out_->block->block, instruction.position);
    }
    if (out_->block->slots[static_cast<std::size_t>(slot)].home == Home::kFrame) temporary_bytes_ += bytes;
    out_->outputs.push_back({.slot = slot,
                             .type = TypeIndex(info),
                             .in_place = Reads(instruction, slot),
                             .sent_before = unwritten_since_sent_[static_cast<std::size_t>(slot)]});
    unwritten_since_sent_[static_cast<std::size_t>(slot)] = false;
    return OkStatus();
  }

  // The type of this slot in a prepared step; null if it is not known before the step runs.
  const TensorDesc* InfoIn(std::size_t step, int slot) const {
    for (const OutputSlot& output : out_->OutputsOf(step)) {
      if (output.slot == slot) return &out_->type(output.type);
    }
    for (const InputSlot& input : out_->InputsOf(step)) {
      if (input.slot == slot && IsKnownTensor(out_->type(input.type))) return &out_->type(input.type);
    }
    return nullptr;
  }

  // Computes the rows of each view from the types that the step which cuts or joins them was prepared for.
  void AddViews(const RowGroup& group) {
    const auto step = static_cast<std::size_t>(group.instruction);
    const TensorDesc* whole = InfoIn(step, group.whole);
    if (!out_->steps[step].has_kernel || whole == nullptr || whole->shape.rank() == 0) return;
    std::vector<RowView> views;
    Dim begin = 0;
    for (const int part : group.parts) {
      const TensorDesc* info = InfoIn(step, part);
      if (info == nullptr || info->dtype != whole->dtype || info->shape.rank() == 0) return;
      const Dim end = begin + info->shape[0];
      if (out_->block->slots[static_cast<std::size_t>(part)].view_of == group.whole)
        views.push_back({part, group.whole, TypeIndex(*whole), begin, end});
      begin = end;
    }
    if (begin != whole->shape[0]) return;
    for (const RowView& view : views) {
      view_of_[static_cast<std::size_t>(view.slot)] = static_cast<int>(out_->views.size());
      out_->views.push_back(view);
    }
  }

  void PlaceOutputs() {
    for (OutputSlot& output : out_->outputs) {
      output.view = view_of_[static_cast<std::size_t>(output.slot)];
      if (output.view < 0) output.place = PlaceOf(output);
    }
  }

  // Returns the place of a temporary, large enough for all its writers; -1 for other variables.
  int PlaceOf(const OutputSlot& output) {
    const SlotInfo& declared = out_->block->slots[static_cast<std::size_t>(output.slot)];
    if (declared.home != Home::kFrame) return -1;
    const TensorDesc& info = out_->type(output.type);
    const std::size_t bytes = static_cast<std::size_t>(info.shape.Count()) * SizeOf(info.dtype);
    int& place = place_of_[static_cast<std::size_t>(output.slot)];
    if (place < 0) {
      place = static_cast<int>(out_->places.size());
      out_->places.push_back(
          {.slot = output.slot, .type = output.type, .bytes = bytes, .own_buffer = declared.kept});
    }
    Place& found = out_->places[static_cast<std::size_t>(place)];
    found.bytes = std::max(found.bytes, bytes);
    return place;
  }

  void PlacePlaces() {
    const std::vector<int> from = in_place_ ? PlacesToTakeOver(*out_, place_of_) : std::vector<int>();
    std::vector<Lifetime> lifetimes;
    std::vector<int> lifetime_of(out_->places.size(), -1);  // places that take over others' memory share one
    for (const std::size_t p : ByFirstWrite()) {
      Place& place = out_->places[p];
      const auto s = static_cast<std::size_t>(place.slot);
      place.sent = sent_[s] || whole_sent_[s];
      if (place.own_buffer) continue;
      const SlotInfo& slot = out_->block->slots[s];
      if (!from.empty() && from[p] >= 0) {
        lifetime_of[p] = lifetime_of[static_cast<std::size_t>(from[p])];
        int& last = lifetimes[static_cast<std::size_t>(lifetime_of[p])].last;
        last = std::max(last, slot.last_use);
        continue;
      }
      lifetime_of[p] = static_cast<int>(lifetimes.size());
      lifetimes.push_back({place.bytes, slot.first_write, slot.last_use});
    }
    const MemoryPlan plan = PlanMemory(lifetimes);
    for (std::size_t p = 0; p < out_->places.size(); ++p) {
      if (lifetime_of[p] >= 0)
        out_->places[p].offset = plan.offsets[static_cast<std::size_t>(lifetime_of[p])];
    }
    out_->arena_bytes = plan.arena_bytes;
  }

  // The places; one whose memory another takes over stands before it.
  std::vector<std::size_t> ByFirstWrite() const {
    std::vector<std::size_t> order(out_->places.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [this](std::size_t p) {
      return out_->block->slots[static_cast<std::size_t>(out_->places[p].slot)].first_write;
    });
    return order;
  }

  const Services& services_;
  const bool in_place_;
  FlatIndex type_index_;  // of out_->types
  std::vector<TensorDesc> known_;
  std::vector<int> type_of_;         // by slot: its present type's index in out_->types, -1 if not looked up
  std::vector<int> place_of_;        // index in places by slot, -1 if it has none
  std::vector<int> view_of_;         // index in views by slot, -1 if it is not a view
  std::vector<bool> guessed_;        // by slot: the run may produce another shape
  std::vector<bool> block_written_;  // by slot: last written by an op that starts blocks
  std::vector<bool> sent_;           // by slot: an op that may hold it has read it
  // By slot: sent, and not written since. The first step that writes it uses other memory while the sender
  // holds this memory; later steps (a fetch_barrier, after the recv) keep that other memory and its value.
  std::vector<bool> unwritten_since_sent_;
  std::vector<bool> whole_sent_;     // by slot: an op that may hold it has read a view of it
  std::size_t temporary_bytes_ = 0;  // of all outputs that are temporaries
  std::shared_ptr<Specialisation> out_;
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
