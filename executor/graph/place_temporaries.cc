#include "executor/graph/place_temporaries.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "executor/graph/in_place.h"
#include "executor/graph/memory_plan.h"

namespace penstock::exec {
namespace {

class Placing {
 public:
  Placing(Specialisation& plan, const SentValues& sent)
      : plan_(plan),
        sent_(sent),
        place_of_(plan.block->slots.size(), -1),
        view_of_(plan.block->slots.size(), -1) {}

  void Run(bool in_place) {
    for (const RowGroup& group : plan_.block->row_groups) AddViews(group);
    for (OutputSlot& output : plan_.outputs) {
      output.view = view_of_[static_cast<std::size_t>(output.slot)];
      if (output.view < 0) output.place = PlaceOf(output);
    }
    LayOut(in_place ? PlacesToTakeOver(plan_, place_of_) : std::vector<int>(plan_.places.size(), -1));
  }

 private:
  const SlotInfo& Slot(int slot) const { return plan_.block->slots[static_cast<std::size_t>(slot)]; }

  // The type of a slot in a step with a kernel; -1 if it is not known before the step runs.
  int TypeIn(std::size_t step, int slot) const {
    for (const OutputSlot& output : plan_.OutputsOf(step)) {
      if (output.slot == slot) return output.type;
    }
    for (const InputSlot& input : plan_.InputsOf(step)) {
      if (input.slot == slot && IsKnownTensor(plan_.type(input.type))) return input.type;
    }
    return -1;
  }

  // Computes the rows of each view from the types that the step which cuts or joins them was prepared for.
  void AddViews(const RowGroup& group) {
    const auto step = static_cast<std::size_t>(group.instruction);
    const int whole = TypeIn(step, group.whole);
    if (!plan_.steps[step].has_kernel || whole < 0 || plan_.type(whole).shape.rank() == 0) return;
    std::vector<RowView> views;
    Dim begin = 0;
    for (const int part : group.parts) {
      const int type = TypeIn(step, part);
      if (type < 0 || plan_.type(type).dtype != plan_.type(whole).dtype) return;
      const Shape& shape = plan_.type(type).shape;
      if (shape.rank() == 0) return;
      const Dim end = begin + shape[0];
      if (Slot(part).view_of == group.whole) views.push_back({part, group.whole, whole, begin, end});
      begin = end;
    }
    if (begin != plan_.type(whole).shape[0]) return;
    for (const RowView& view : views) {
      view_of_[static_cast<std::size_t>(view.slot)] = static_cast<int>(plan_.views.size());
      plan_.views.push_back(view);
    }
  }

  // Returns the place of a temporary, large enough for all its writers; -1 for other variables.
  int PlaceOf(const OutputSlot& output) {
    const SlotInfo& declared = Slot(output.slot);
    if (declared.home != Home::kFrame) return -1;
    const TensorDesc& type = plan_.type(output.type);
    const std::size_t bytes = static_cast<std::size_t>(type.shape.Count()) * SizeOf(type.dtype);
    int& place = place_of_[static_cast<std::size_t>(output.slot)];
    if (place < 0) {
      place = static_cast<int>(plan_.places.size());
      plan_.places.push_back({.slot = output.slot,
                              .type = output.type,
                              .bytes = bytes,
                              .own_buffer = declared.kept,
                              .sent = sent_.Has(output.slot)});
    }
    Place& found = plan_.places[static_cast<std::size_t>(place)];
    found.bytes = std::max(found.bytes, bytes);
    return place;
  }

  // `from`: by place, the place whose memory it takes over, or -1.
  void LayOut(const std::vector<int>& from) {
    std::vector<Lifetime> lifetimes;
    std::vector<int> lifetime_of(plan_.places.size(), -1);  // places that share memory share one
    for (const std::size_t p : ByFirstWrite()) {
      const Place& place = plan_.places[p];
      if (place.own_buffer) continue;
      const SlotInfo& slot = Slot(place.slot);
      if (from[p] >= 0) {
        lifetime_of[p] = lifetime_of[static_cast<std::size_t>(from[p])];
        int& last = lifetimes[static_cast<std::size_t>(lifetime_of[p])].last;
        last = std::max(last, slot.last_use);
        continue;
      }
      lifetime_of[p] = static_cast<int>(lifetimes.size());
      lifetimes.push_back({place.bytes, slot.first_write, slot.last_use});
    }
    const MemoryPlan memory = PlanMemory(lifetimes);
    for (std::size_t p = 0; p < plan_.places.size(); ++p) {
      if (lifetime_of[p] >= 0)
        plan_.places[p].offset = memory.offsets[static_cast<std::size_t>(lifetime_of[p])];
    }
    plan_.arena_bytes = memory.arena_bytes;
  }

  // The places; one whose memory another takes over stands before it.
  std::vector<std::size_t> ByFirstWrite() const {
    std::vector<std::size_t> order(plan_.places.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {},
                             [this](std::size_t p) { return Slot(plan_.places[p].slot).first_write; });
    return order;
  }

  Specialisation& plan_;
  const SentValues& sent_;
  std::vector<int> place_of_;  // index in places by slot, -1 if it has none
  std::vector<int> view_of_;   // index in views by slot, -1 if it is not a view
};

}  // namespace

void PlaceTemporaries(Specialisation& plan, const SentValues& sent, bool in_place) {
  Placing(plan, sent).Run(in_place);
}

}  // namespace penstock::exec
