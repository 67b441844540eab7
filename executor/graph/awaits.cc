#include "executor/graph/awaits.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "framework/roles/collective_views.h"
#include "framework/roles/views.h"

namespace penstock::exec {
namespace {

constexpr char kAwaitRingOp[] = "c_sync_comm_stream";
constexpr char kAwaitComputationOp[] = "c_sync_calc_stream";

class Walk {
 public:
  explicit Walk(const CompiledBlock& block)
      : block_(block), may_arrive_(LeavesPulls(block)), arrived_(block.slots.size(), false) {}

  std::vector<Await> Run() {
    for (const Instruction& instruction : block_.instructions) {
      WaitForLeft(instruction);
      Wait(instruction);
      Start(instruction);
      ++step_;
    }
    WaitForAll();
    return std::move(awaits_);
  }

 private:
  void Wait(const Instruction& instruction) {
    if (const std::optional<Operation> awaited = AwaitedBy(instruction)) Finish(*awaited);
    if (OrdersStreamsInPlace(instruction)) return;
    if (instruction.starts_blocks) return WaitForAll();
    const bool receives = roles::CommOf(*instruction.op) == roles::Comm::kRecv;
    if (instruction.def->effects().Has(Effect::kStep) && !receives) WaitFor(Operation{});
    for (const auto* arguments : {&instruction.inputs, &instruction.outputs}) {
      for (const auto& args : *arguments) {
        for (const int slot : args) WaitForUseOf(slot);
      }
    }
  }

  // In a block that leaves pulls: before its fetch_barrier, for pulls of the last run; after it, for its own.
  void WaitForLeft(const Instruction& instruction) {
    if (has_left_) {
      for (const auto& args : instruction.inputs) {
        for (const int slot : args) {
          if (slot >= 0 && block_.slots[static_cast<std::size_t>(slot)].view_of >= 0)
            awaits_.push_back({step_, Await::For::kCopied, slot});
        }
      }
    }
    if (!may_arrive_) return;
    if (LeavesPulls(instruction)) {
      for (const int slot : block_.fetches) WaitForArrival(slot);
      may_arrive_ = false;
      has_left_ = true;
      return;
    }
    if (FindsByName(instruction)) awaits_.push_back({step_, Await::For::kLeft});
    for (const auto* arguments : {&instruction.inputs, &instruction.outputs}) {
      for (const auto& args : *arguments) {
        for (const int slot : args) WaitForArrival(slot);
      }
    }
  }
  void WaitForArrival(int slot) {
    if (slot < 0 || block_.slots[static_cast<std::size_t>(slot)].home != Home::kScope) return;
    if (!arrived_[static_cast<std::size_t>(slot)]) awaits_.push_back({step_, Await::For::kLeft, slot});
    arrived_[static_cast<std::size_t>(slot)] = true;
  }

  void Start(const Instruction& instruction) {
    const std::optional<Operation> operation = OperationOf(instruction);
    if (!operation) return;
    if (operation->kind == Operation::Kind::kRing) Use(instruction.inputs, *operation);
    Use(instruction.outputs, *operation);
  }

  void Use(const std::vector<std::vector<int>>& arguments, const Operation& operation) {
    for (const auto& args : arguments) {
      for (const int slot : args) {
        if (slot >= 0) users_[operation].insert(slot);
      }
    }
  }

  // The operations of a ring use few variables between two waits.
  void WaitForUseOf(int slot) {
    for (auto it = users_.begin(); it != users_.end();) {
      const auto next = std::next(it);
      if (it->second.contains(slot)) WaitFor(it->first);
      it = next;
    }
  }
  void WaitForAll() {
    while (!users_.empty()) WaitFor(users_.begin()->first);
  }
  void WaitFor(Operation operation) {
    if (!users_.contains(operation)) return;
    awaits_.push_back({.step = step_, .operation = operation});
    Finish(operation);
  }
  void Finish(const Operation& operation) { users_.erase(operation); }

  const CompiledBlock& block_;
  bool may_arrive_;            // pulls of the last run may be in flight
  bool has_left_ = false;      // pulls of this run may be
  std::vector<bool> arrived_;  // by slot: awaited
  int step_ = 0;
  std::map<Operation, std::set<int>> users_;  // the slots that operations in progress use
  std::vector<Await> awaits_;
};

bool StartsOperations(const Instruction& instruction) {
  return instruction.def->effects().AnyOf({Effect::kRing, Effect::kStep});
}

}  // namespace

bool OrdersStreamsInPlace(const Instruction& instruction) {
  const Op& op = *instruction.op;
  return (op.type() == kAwaitRingOp || op.type() == kAwaitComputationOp) &&
         op.InputName("X") == op.OutputName("Out");
}

bool LeavesPulls(const Instruction& instruction) {
  return roles::BarrierView(*instruction.op).leaves_pulls();
}

bool LeavesPulls(const CompiledBlock& block) {
  return block.effects.Has(Effect::kStep) &&
         std::ranges::any_of(block.instructions, [](const Instruction& each) { return LeavesPulls(each); });
}

bool FindsByName(const Instruction& instruction) {
  return instruction.starts_blocks || instruction.def->effects().Has(Effect::kScope);
}

std::optional<Operation> AwaitedBy(const Instruction& instruction) {
  const Op& op = *instruction.op;
  if (op.type() == kAwaitRingOp) return Operation::Ring(roles::CollectiveView(op).ring());
  if (roles::CommOf(op) == roles::Comm::kFetchBarrier) return Operation{};
  return std::nullopt;
}

std::optional<Operation> OperationOf(const Instruction& instruction) {
  const Op& op = *instruction.op;
  if (roles::CommOf(op) == roles::Comm::kRecv) {
    // One that asks for the next version is complete after the fetch_barrier, and nothing uses it before.
    const roles::RecvView recv(op);
    if (recv.next_version() || recv.by_communicator() || recv.idle()) return std::nullopt;
    return Operation{};
  }
  const bool orders = op.type() == kAwaitRingOp || op.type() == kAwaitComputationOp;
  if (orders || !instruction.def->effects().Has(Effect::kRing)) return std::nullopt;
  return Operation::Ring(roles::CollectiveView(op).ring());
}

std::vector<Await> FindAwaits(const CompiledBlock& block) {
  if (std::ranges::none_of(block.instructions, StartsOperations)) return {};
  return Walk(block).Run();
}

}  // namespace penstock::exec
