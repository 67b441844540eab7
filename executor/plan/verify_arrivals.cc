#include "executor/plan/verify_arrivals.h"

#include <set>

#include "framework/base/strings.h"
#include "framework/roles/views.h"

namespace penstock::exec {
namespace {

class Arrivals {
 public:
  explicit Arrivals(const Specialisation& plan) : plan_(plan), block_(*plan.block) {}

  std::optional<ArrivalFault> Find() {
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const Instruction& instruction = block_.instructions[s];
      Take(s);
      std::string rule = left_ ? FaultAfter(instruction) : FaultBefore(instruction);
      if (!rule.empty()) return ArrivalFault{s, std::move(rule)};
      if (roles::CommOf(*instruction.op) == roles::Comm::kRecv) NoteReceived(instruction);
      left_ |= LeavesPulls(instruction);
    }
    return std::nullopt;
  }

 private:
  const SlotInfo& At(int slot) const { return block_.slots[static_cast<std::size_t>(slot)]; }

  void Take(std::size_t step) {
    copied_.clear();
    for (; await_ < plan_.awaits.size() && plan_.awaits[await_].step <= static_cast<int>(step); ++await_) {
      const Await& await = plan_.awaits[await_];
      if (await.what == Await::For::kCopied) copied_.insert(await.slot);
      if (await.what != Await::For::kLeft) continue;
      if (await.slot < 0) all_arrived_ = true;
      arrived_.insert(await.slot);
    }
  }

  std::string FaultBefore(const Instruction& instruction) const {
    if (all_arrived_) return "";
    if (FindsByName(instruction)) return "it may use variables that are on their way";
    for (const auto* arguments : {&instruction.inputs, &instruction.outputs}) {
      for (const auto& args : *arguments) {
        for (const int slot : args) {
          if (slot >= 0 && At(slot).home == Home::kScope && !arrived_.contains(slot) &&
              !LeavesPulls(instruction))
            return StrCat(At(slot).name, " may be on its way");
        }
      }
    }
    return "";
  }

  std::string FaultAfter(const Instruction& instruction) const {
    bool joins = false;
    for (const auto& args : instruction.inputs) {
      for (const int slot : args) {
        if (slot < 0 || !received_.contains(slot)) continue;
        joins = copied_.contains(slot);
        if (!joins) return StrCat(At(slot).name, " may be on its way");
      }
    }
    for (const auto& args : instruction.outputs) {
      for (const int slot : args) {
        if (!joins && received_.contains(slot)) return StrCat(At(slot).name, " may be on its way");
      }
    }
    return "";
  }

  void NoteReceived(const Instruction& instruction) {
    for (const auto& args : instruction.outputs) {
      for (const int slot : args) {
        if (slot < 0) continue;
        received_.insert(slot);
        if (At(slot).view_of >= 0) received_.insert(At(slot).view_of);
      }
    }
  }

  const Specialisation& plan_;
  const CompiledBlock& block_;
  std::size_t await_ = 0;  // the next of the plan's
  bool left_ = false;      // the fetch_barrier has run
  bool all_arrived_ = false;
  std::set<int> arrived_;   // slots of the scope that were awaited
  std::set<int> copied_;    // pieces that are awaited before this step
  std::set<int> received_;  // slots
};

}  // namespace

std::optional<ArrivalFault> FindArrivalFault(const Specialisation& plan) {
  if (!LeavesPulls(*plan.block)) return std::nullopt;
  return Arrivals(plan).Find();
}

}  // namespace penstock::exec
