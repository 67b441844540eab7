#include "executor/graph/in_place.h"

#include <algorithm>

#include "framework/op/operand_kinds.h"

namespace penstock::exec {
namespace {

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
      const bool plain = prepared.kernel != nullptr && !prepared.starts_blocks && !prepared.may_lack_inputs &&
                         !prepared.has_uncertain && !def.side_effect();
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
    const VarInfo& written = specialisation_.type(output.type);
    const SlotDef* const out = SlotOf(step, output.slot, /*input=*/false);
    for (const InputSlot& input : specialisation_.InputsOf(static_cast<std::size_t>(step))) {
      const int from = PlaceOf(input.slot);
      if (from < 0 || from == to || taken_[static_cast<std::size_t>(from)]) continue;
      const VarInfo& read = specialisation_.type(input.type);
      const bool alike = read.kind == VarKind::kTensor && read.dtype == written.dtype &&
                         read.shape.Count() == written.shape.Count() && Bytes(from) == Bytes(to);
      if (!alike || slot(input.slot).last_use != step) continue;
      const SlotDef* const in = SlotOf(step, input.slot, /*input=*/true);
      if (out != nullptr && in != nullptr && MayShareMemory(*out, *in)) return from;
    }
    return -1;
  }
  std::size_t Bytes(int place) const { return specialisation_.places[static_cast<std::size_t>(place)].bytes; }

  // The declaration of the only argument that is this slot; null if there are several.
  const SlotDef* SlotOf(int step, int wanted, bool input) const {
    const Instruction& instruction = block().instructions[static_cast<std::size_t>(step)];
    const std::vector<Slot>& slots = input ? instruction.op->inputs() : instruction.op->outputs();
    const auto& arguments = input ? instruction.inputs : instruction.outputs;
    const SlotDef* found = nullptr;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto times = std::ranges::count(arguments[i], wanted);
      if (times == 0) continue;
      if (times > 1 || found != nullptr) return nullptr;
      const std::string& name = slots[i].name.str();
      found = input ? instruction.def->FindInput(name) : instruction.def->FindOutput(name);
    }
    return found;
  }

  const Specialisation& specialisation_;
  const std::vector<int>& place_of_;
  std::vector<bool> exposed_;  // by slot
  std::vector<bool> taken_;    // by place
  std::vector<int> from_;
};

}  // namespace

std::vector<int> PlacesToTakeOver(const Specialisation& specialisation, const std::vector<int>& place_of) {
  return TakeOvers(specialisation, place_of).Find();
}

}  // namespace penstock::exec
