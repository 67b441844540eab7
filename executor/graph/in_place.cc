#include "executor/graph/in_place.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace penstock::exec {
namespace {

// The slot of the op whose only argument is this one; null if other arguments are the same variable.
const std::string* OnlySlotOf(const std::vector<Slot>& slots, const std::vector<std::vector<int>>& arguments,
                              int wanted) {
  const std::string* found = nullptr;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto times = std::ranges::count(arguments[i], wanted);
    if (times == 0) continue;
    if (times > 1 || found != nullptr) return nullptr;
    found = &slots[i].name.str();
  }
  return found;
}

// Whether the op is elementwise and has no other output.
bool IsOneElementwise(const Instruction& instruction, const std::string& out) {
  const OpDef& def = *instruction.def;
  if (!def.keeps_layout() || def.optimizer().has_value()) return false;
  if (def.FindOutput(out)->aliasing == Aliasing::kNever) return false;
  std::ptrdiff_t outputs = 0;
  for (const std::vector<int>& row : instruction.outputs)
    outputs += std::ranges::count_if(row, [](int slot) { return slot >= 0; });
  return outputs == 1;
}

class TakeOvers {
 public:
  TakeOvers(const Specialisation& specialisation, const std::vector<int>& place_of)
      : specialisation_(specialisation),
        place_of_(place_of),
        exposed_(place_of.size(), false),
        taken_(specialisation.places.size(), false),
        from_(specialisation.places.size(), -1) {
    for (const int slot : block().imports) exposed_[static_cast<std::size_t>(slot)] = true;
    for (const RowView& view : specialisation.views) exposed_[static_cast<std::size_t>(view.of)] = true;
  }

  std::vector<int> Find() {
    for (std::size_t step = 0; step < specialisation_.steps.size(); ++step) {
      const Step& prepared = specialisation_.steps[step];
      const OpDef& def = *block().instructions[step].def;
      const bool plain = prepared.has_kernel && !prepared.starts_blocks && !prepared.may_lack_inputs &&
                         !prepared.has_uncertain && !def.effects().MayHoldArguments();
      if (plain) AddOneOf(static_cast<int>(step));
    }
    return std::move(from_);
  }

 private:
  const CompiledBlock& block() const { return *specialisation_.block; }
  const SlotInfo& slot(int index) const { return block().slots[static_cast<std::size_t>(index)]; }

  // The place of a slot in the arena, or -1.
  int PlaceOf(int slot) const {
    const int place = slot < 0 ? -1 : place_of_[static_cast<std::size_t>(slot)];
    if (place < 0 || exposed_[static_cast<std::size_t>(slot)]) return -1;
    return specialisation_.places[static_cast<std::size_t>(place)].own_buffer ? -1 : place;
  }

  // The largest output that can take over a place does.
  void AddOneOf(int step) {
    int best_to = -1, best_from = -1;
    std::size_t best_bytes = 0;
    for (const OutputSlot& output : specialisation_.OutputsOf(static_cast<std::size_t>(step))) {
      const int to = output.view >= 0 || output.in_place ? -1 : PlaceOf(output.slot);
      if (to < 0 || slot(output.slot).first_write != step) continue;
      const std::size_t bytes = specialisation_.places[static_cast<std::size_t>(to)].bytes;
      const int from = bytes > best_bytes ? InputFor(step, output, to) : -1;
      if (from < 0) continue;
      best_to = to;
      best_from = from;
      best_bytes = bytes;
    }
    if (best_to < 0) return;
    from_[static_cast<std::size_t>(best_to)] = best_from;
    taken_[static_cast<std::size_t>(best_from)] = true;
  }

  // The place of an input of the step that the output at place `to` can take over, or -1.
  int InputFor(int step, const OutputSlot& output, int to) const {
    const Instruction& instruction = block().instructions[static_cast<std::size_t>(step)];
    const TensorDesc& written = specialisation_.type(output.type);
    for (const InputSlot& input : specialisation_.InputsOf(static_cast<std::size_t>(step))) {
      const int from = PlaceOf(input.slot);
      if (from < 0 || from == to || taken_[static_cast<std::size_t>(from)]) continue;
      const TensorDesc& read = specialisation_.type(input.type);
      const bool alike = read.kind == VarKind::kTensor && read.dtype == written.dtype &&
                         read.shape.Count() == written.shape.Count() && Bytes(from) == Bytes(to);
      if (!alike || slot(input.slot).last_use != step) continue;
      if (ComputesInPlace(instruction, output.slot, input.slot, read.shape == written.shape)) return from;
    }
    return -1;
  }
  std::size_t Bytes(int place) const { return specialisation_.places[static_cast<std::size_t>(place)].bytes; }

  const Specialisation& specialisation_;
  const std::vector<int>& place_of_;
  std::vector<bool> exposed_;  // by slot
  std::vector<bool> taken_;    // by place
  std::vector<int> from_;
};

}  // namespace

bool ComputesInPlace(const Instruction& instruction, int output, int input, bool alike) {
  const std::string* const out = OnlySlotOf(instruction.op->outputs(), instruction.outputs, output);
  const std::string* const in = OnlySlotOf(instruction.op->inputs(), instruction.inputs, input);
  if (out == nullptr || in == nullptr) return false;
  return instruction.def->computes_in_place(*out, *in) || (alike && IsOneElementwise(instruction, *out));
}

std::vector<int> PlacesToTakeOver(const Specialisation& specialisation, const std::vector<int>& place_of) {
  return TakeOvers(specialisation, place_of).Find();
}

}  // namespace penstock::exec
