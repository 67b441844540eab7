#include "framework/autodiff/accumulate.h"

#include <algorithm>
#include <map>

#include "framework/ir/mentions.h"

namespace penstock {
namespace {

// Fluid visits slots sorted by name; this order determines the numbers of the parts.
std::vector<Slot> SortedByName(std::vector<Slot> slots) {
  std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.name < b.name; });
  return slots;
}

class Accumulator {
 public:
  Accumulator(std::vector<Op> grads, int block, GradNames& names, const IncomingGrads& incoming)
      : grads_(std::move(grads)), block_(block), names_(names), incoming_(incoming) {}

  std::vector<Op> Run() && {
    for (at_ = 0; at_ < grads_.size(); ++at_) {
      SumWhatIsRead();
      PartOutputs();
    }
    for (const std::string& grad : order_) {
      if (written_[grad].parts.size() > 1) sums_.push_back({grads_.size(), Sum(grad)});
    }
    return Merge();
  }

 private:
  struct Written {
    std::vector<std::string> parts;
    std::size_t first = 0;  // position of the op that first writes it
    int next_part = 0;
    bool came_in = false;  // the first part is the incoming gradient, under the whole's name
  };
  struct PendingSum {
    std::size_t before;
    Op op;
  };

  Written& WrittenOf(const std::string& grad) {
    const auto [it, inserted] = written_.try_emplace(grad);
    if (inserted) order_.push_back(grad);
    if (inserted && incoming_.tensors.contains(grad)) {
      it->second.parts = {grad};
      it->second.came_in = true;
    }
    return it->second;
  }

  void SumWhatIsRead() {
    for (const Slot& slot : SortedByName(grads_[at_].inputs())) {
      for (const std::string& name : slot.args) {
        Written& written = WrittenOf(name);
        if (written.parts.size() >= 2) {
          sums_.push_back({at_, Sum(name)});
          written.parts = {name};
        }
        if (incoming_.tensors.contains(name) && !Writes(grads_[at_], name)) {
          // This op is the gradient of an op that overwrote the variable, and consumes the sum. The
          // variable's earlier value has a gradient of its own.
          written.parts.clear();
          written.came_in = false;
        }
      }
    }
  }

  void PartOutputs() {
    for (const Slot& slot : SortedByName(grads_[at_].outputs())) {
      for (std::size_t i = 0; i < slot.args.size(); ++i) PartOutput(slot.name, i);
    }
  }

  void PartOutput(const std::string& slot, std::size_t i) {
    Op& op = grads_[at_];
    const std::string name = op.Output(slot)[i];
    if (name == kEmptyVarName || Reads(op, name)) return;
    if (incoming_.arrays.contains(name)) return;
    Written& written = WrittenOf(name);
    if (written.parts.empty()) {
      written.parts = {name};
      written.first = at_;
      return;
    }
    if (written.parts.size() == 1 && !written.came_in) RenameFirst(name, written, slot, i);
    const std::string part = NewPart(name, written);
    std::vector<std::string> args(op.Output(slot));
    args[i] = part;
    op.AddOutput(slot, std::move(args));
    written.parts.push_back(part);
  }

  // The gradient written so far under the whole's name becomes the first part, also in ops that already read
  // it.
  void RenameFirst(const std::string& name, Written& written, const std::string& slot, std::size_t i) {
    const std::string part = NewPart(name, written);
    for (std::size_t k = written.first; k < at_; ++k) grads_[k].Rename(name, part, /*attrs=*/false);
    for (PendingSum& sum : sums_) sum.op.Rename(name, part, /*attrs=*/false);
    for (const Slot& other : SortedByName(grads_[at_].outputs())) {
      std::vector<std::string> args(other.args);
      const std::size_t until = other.name == slot ? i : args.size();
      std::replace(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(until), name, part);
      grads_[at_].AddOutput(other.name, std::move(args));
      if (other.name == slot) break;
    }
    written.parts.front() = part;
  }

  std::string NewPart(const std::string& name, Written& written) {
    std::string part = StrCat(name, "@RENAME@block", block_, "@", written.next_part++);
    names_.AddPart(part, name);
    return part;
  }

  Op Sum(const std::string& grad) {
    Op op("sum");
    op.AddInput("X", written_[grad].parts).AddOutput("Out", {grad});
    op.Set("use_mkldnn", false).SetRole(OpRole::kBackward).Set(kDeviceAttr, "");
    return op;
  }

  std::vector<Op> Merge() {
    std::vector<Op> out;
    out.reserve(grads_.size() + sums_.size());
    auto sum = sums_.begin();
    for (std::size_t i = 0; i <= grads_.size(); ++i) {
      for (; sum != sums_.end() && sum->before == i; ++sum) out.push_back(std::move(sum->op));
      if (i < grads_.size()) out.push_back(std::move(grads_[i]));
    }
    return out;
  }

  std::vector<Op> grads_;
  int block_;
  GradNames& names_;
  const IncomingGrads& incoming_;
  std::size_t at_ = 0;
  std::map<std::string, Written, std::less<>> written_;
  std::vector<std::string> order_;  // gradients in the order of first mention
  std::vector<PendingSum> sums_;    // in ascending position
};

}  // namespace

std::vector<Op> AddUpRepeatedOutputs(std::vector<Op> grads, int block, GradNames& names,
                                     const IncomingGrads& incoming) {
  return Accumulator(std::move(grads), block, names, incoming).Run();
}

}  // namespace penstock
