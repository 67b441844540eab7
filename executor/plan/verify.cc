#include "executor/plan/verify.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/graph/explain.h"
#include "executor/plan/verify_arrivals.h"
#include "executor/plan/verify_chain.h"
#include "framework/base/strings.h"

namespace penstock::exec {
namespace {

class Verifier {
 public:
  explicit Verifier(const Specialisation& plan)
      : plan_(plan),
        block_(*plan.block),
        written_(block_.slots.size(), false),
        left_(block_.slots.size(), kUnknown) {}

  Status Run() {
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      PENSTOCK_RETURN_IF_ERROR(CheckWritten(s));
      PENSTOCK_RETURN_IF_ERROR(CheckTypes(s));
      if (block_.instructions[s].chain != nullptr) {
        if (const std::string fault = FaultOfChain(plan_, s); !fault.empty()) return Broken(s, fault);
      }
      PENSTOCK_RETURN_IF_ERROR(CheckInProgress(s));
    }
    if (const std::optional<ArrivalFault> fault = FindArrivalFault(plan_))
      return Broken(fault->step, fault->rule);
    TakeAwaits(plan_.steps.size());
    if (!in_progress_.empty()) {
      return Broken(plan_.steps.size() - 1, "an operation is in progress when the run has ended: ",
                    OperationText(in_progress_.begin()->first));
    }
    return CheckMemory();
  }

 private:
  static constexpr int kUnknown = -1;

  template <typename... Parts>
  Status Broken(std::size_t step, const Parts&... parts) const {
    return ExplainOp(
        InternalError("E-exec-plan", "the plan of block ", block_.block, " is wrong: ", parts...),
        block_.program, block_.block, block_.instructions[step].position);
  }
  const std::string& Name(int slot) const { return block_.slots[static_cast<std::size_t>(slot)].name; }
  static std::string OperationText(const Operation& operation) {
    return operation.kind == Operation::Kind::kPulls ? "pulls" : StrCat("ring ", operation.ring);
  }

  // Reads of a temporary follow a write of it. Ops that run blocks, or that values tell what to read, look
  // for themselves; so do readers of control variables.
  Status CheckWritten(std::size_t step) {
    const Instruction& instruction = block_.instructions[step];
    if (!instruction.starts_blocks && !instruction.def->reads_only_some()) {
      for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
        for (const int slot : instruction.inputs[i]) {
          if (slot < 0 || written_[static_cast<std::size_t>(slot)]) continue;
          const SlotInfo& info = block_.slots[static_cast<std::size_t>(slot)];
          if (info.home != Home::kFrame || info.var->kind != VarKind::kTensor || !info.var->type) continue;
          return Broken(step, "no step before writes ", info.name);
        }
      }
    }
    for (const auto& args : instruction.outputs) {
      for (const int slot : args) {
        if (slot >= 0) written_[static_cast<std::size_t>(slot)] = true;
      }
    }
    return OkStatus();
  }

  Status CheckTypes(std::size_t step) {
    for (const InputSlot& input : plan_.InputsOf(step)) {
      const int left = left_[static_cast<std::size_t>(input.slot)];
      if (left == kUnknown || left == input.type) continue;
      const TensorDesc &is = plan_.type(left), &read = plan_.type(input.type);
      if (is.dtype == read.dtype && is.shape == read.shape) continue;  // they differ in levels of LoD
      return Broken(step, Name(input.slot), " is read as ", TypeText(read), " and written as ", TypeText(is));
    }
    for (const auto& args : block_.instructions[step].outputs) {
      for (const int slot : args) {
        if (slot >= 0) left_[static_cast<std::size_t>(slot)] = kUnknown;
      }
    }
    for (const OutputSlot& output : plan_.OutputsOf(step))
      left_[static_cast<std::size_t>(output.slot)] = output.type;
    return OkStatus();
  }

  void TakeAwaits(std::size_t step) {
    for (; await_ < plan_.awaits.size() && plan_.awaits[await_].step <= static_cast<int>(step); ++await_)
      if (plan_.awaits[await_].what == Await::For::kOperation)
        in_progress_.erase(plan_.awaits[await_].operation);
  }

  Status CheckInProgress(std::size_t step) {
    TakeAwaits(step);
    const Instruction& instruction = block_.instructions[step];
    if (const std::optional<Operation> awaited = AwaitedBy(instruction)) in_progress_.erase(*awaited);
    if (!OrdersStreamsInPlace(instruction)) {
      for (const auto& [operation, slots] : in_progress_) {
        if (instruction.starts_blocks)
          return Broken(step, "its blocks may use what an operation uses: ", OperationText(operation));
        for (const auto* arguments : {&instruction.inputs, &instruction.outputs}) {
          for (const auto& args : *arguments) {
            for (const int slot : args) {
              if (slots.contains(slot))
                return Broken(step, Name(slot), " is in use by an operation: ", OperationText(operation));
            }
          }
        }
      }
    }
    if (const std::optional<Operation> started = OperationOf(instruction)) {
      std::set<int>& slots = in_progress_[*started];
      const auto add = [&](const std::vector<std::vector<int>>& arguments) {
        for (const auto& args : arguments) slots.insert(args.begin(), args.end());
      };
      if (started->kind == Operation::Kind::kRing) add(instruction.inputs);
      add(instruction.outputs);
      slots.erase(-1);
    }
    return OkStatus();
  }

  // Goes through the places by first write, with those alive by their offset.
  Status CheckMemory() {
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < plan_.places.size(); ++p) {
      if (!plan_.places[p].own_buffer) order.push_back(p);
    }
    std::ranges::stable_sort(order, {}, [this](std::size_t p) { return SlotOf(p).first_write; });
    for (const std::size_t p : order) {
      const Place& place = plan_.places[p];
      const auto step = static_cast<std::size_t>(std::max(SlotOf(p).first_write, 0));
      if (place.offset + place.bytes > plan_.arena_bytes)
        return Broken(step, Name(place.slot), " ends behind the arena");
      PENSTOCK_RETURN_IF_ERROR(PutIntoArena(p, step));
    }
    return CheckSizes();
  }

  // Whether a step can compute an output in the memory of a temporary that it reads.
  bool TakesOver(std::size_t step, int output, int input) const {
    const Instruction& instruction = block_.instructions[step];
    if (!Reads(instruction, input)) return false;
    return instruction.chain == nullptr || ChainComputesInPlace(plan_, step, output, input);
  }

  // alive_ holds ranges that are disjoint, each with the place that is alive there.
  Status PutIntoArena(std::size_t p, std::size_t step) {
    const Place& place = plan_.places[p];
    if (place.bytes == 0) return OkStatus();
    const std::size_t begin = place.offset, end = place.offset + place.bytes;
    auto it = alive_.upper_bound(begin);
    if (it != alive_.begin()) --it;
    while (it != alive_.end() && it->first < end) {
      const Place& other = plan_.places[it->second];
      const SlotInfo& slot = SlotOf(it->second);
      if (other.offset + other.bytes <= begin) {
        ++it;
        continue;
      }
      const int first = SlotOf(p).first_write;
      const bool takes_over =
          slot.last_use == first && other.offset == begin && TakesOver(step, place.slot, other.slot);
      if (slot.last_use >= first && !takes_over)
        return Broken(step, Name(place.slot), " lies in the memory of ", Name(other.slot),
                      ", which is in use");
      it = alive_.erase(it);
    }
    alive_[begin] = p;
    return OkStatus();
  }

  Status CheckSizes() const {
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      for (const OutputSlot& output : plan_.OutputsOf(s)) {
        if (output.place < 0) continue;
        const TensorDesc& type = plan_.type(output.type);
        const std::size_t bytes = static_cast<std::size_t>(type.shape.Count()) * SizeOf(type.dtype);
        if (bytes > plan_.places[static_cast<std::size_t>(output.place)].bytes)
          return Broken(s, Name(output.slot), " : ", TypeText(type), " is larger than its place");
      }
    }
    return OkStatus();
  }

  const SlotInfo& SlotOf(std::size_t place) const {
    return block_.slots[static_cast<std::size_t>(plan_.places[place].slot)];
  }

  const Specialisation& plan_;
  const CompiledBlock& block_;
  std::vector<bool> written_;  // by slot
  std::vector<int> left_;      // by slot: the type that its last writer leaves, if it is planned
  std::size_t await_ = 0;      // the next of the plan's
  std::map<Operation, std::set<int>> in_progress_;  // the slots that each uses
  std::map<std::size_t, std::size_t> alive_;        // by offset: a place
};

}  // namespace

Status VerifyPlan(const Specialisation& plan) {
  if (plan.steps.empty()) return OkStatus();
  return Verifier(plan).Run();
}

}  // namespace penstock::exec
