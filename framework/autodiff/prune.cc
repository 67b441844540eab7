#include "framework/autodiff/prune.h"

#include <algorithm>
#include <deque>
#include <map>
#include <span>

namespace penstock {
namespace {

bool AllIn(std::span<const std::string> names, const NameSet& set) {
  return !names.empty() &&
         std::all_of(names.begin(), names.end(), [&](const std::string& name) { return set.contains(name); });
}

bool CanBeRemoved(const Op& op, NameSet& no_grad, const GradNames& names) {
  const std::vector<std::string> outputs = op.OutputNames();
  if (outputs.empty() || AllIn(outputs, no_grad)) return true;
  std::vector<std::string> grads_read;
  for (const std::string& name : op.InputNames()) {
    if (names.Contains(name)) grads_read.push_back(name);
  }
  if (!AllIn(grads_read, no_grad)) return false;
  no_grad.insert(outputs.begin(), outputs.end());
  return true;
}

// The data flow among gradient ops: each value of a variable is a node, because a name may be written more
// than once.
class Flow {
 public:
  explicit Flow(const std::vector<Op>& ops) : nodes_(ops.size()) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (const std::string& name : ops[i].InputNames()) {
        const std::size_t value = Latest(name);
        nodes_[i].inputs.push_back(value);
        values_[value].push_back(i);
      }
      for (const std::string& name : ops[i].OutputNames()) nodes_[i].outputs.push_back(NewValue(name));
    }
  }

  // `head` and the ops that depend on its outputs; empty if one of them also needs other values.
  std::vector<std::size_t> ClosureOf(std::size_t head) const {
    std::vector<std::size_t> ops = {head};
    std::deque<std::size_t> candidates = {head};
    std::set<std::size_t> ready(nodes_[head].inputs.begin(), nodes_[head].inputs.end());
    while (!candidates.empty()) {
      const Node& node = nodes_[candidates.front()];
      candidates.pop_front();
      const bool runs =
          !node.inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(),
                                              [&](std::size_t value) { return ready.contains(value); });
      if (!runs) return {};
      for (const std::size_t value : node.outputs) {
        candidates.insert(candidates.end(), values_[value].begin(), values_[value].end());
        ops.insert(ops.end(), values_[value].begin(), values_[value].end());
        ready.insert(value);
      }
    }
    return ops;
  }

 private:
  struct Node {
    std::vector<std::size_t> inputs, outputs;  // values
  };
  std::size_t NewValue(const std::string& name) {
    values_.emplace_back();
    latest_[name] = values_.size() - 1;
    return values_.size() - 1;
  }
  std::size_t Latest(const std::string& name) {
    const auto it = latest_.find(name);
    return it == latest_.end() ? NewValue(name) : it->second;
  }

  std::vector<Node> nodes_;
  std::vector<std::vector<std::size_t>> values_;  // per value, the ops that read it
  std::map<std::string, std::size_t> latest_;
};

}  // namespace

std::vector<Op> RemoveNoGradBranches(std::vector<Op> grads, NameSet& no_grad, const GradNames& names,
                                     const std::function<bool(const std::string&)>& is_array) {
  std::vector<Op> out;
  out.reserve(grads.size());
  // Each removal adds to `no_grad`, so zeros are inserted only after all removals.
  std::erase_if(grads, [&](const Op& op) { return CanBeRemoved(op, no_grad, names); });
  for (Op& op : grads) {
    for (const std::string& name : op.InputNames()) {
      if (!names.Contains(name) || !no_grad.contains(name) || is_array(names.ForwardOf(name))) continue;
      Op zeros("fill_zeros_like");
      zeros.AddInput("X", {names.ForwardOf(name)}).AddOutput("Out", {name});
      zeros.SetRole(OpRole::kBackward).Set(kDeviceAttr, "");
      out.push_back(std::move(zeros));
    }
    out.push_back(std::move(op));
  }
  return out;
}

std::vector<Op> RemoveUnconnected(std::vector<Op> grads, const std::vector<OpEntry>& path,
                                  const NameSet& known) {
  NameSet there = known;
  for (const OpEntry& entry : path) {
    for (const std::string& name : entry.op->InputNames()) there.insert(name);
    for (const std::string& name : entry.op->OutputNames()) there.insert(name);
  }
  std::vector<std::size_t> heads;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const std::vector<std::string> inputs = grads[i].InputNames();
    const bool reads_known = std::any_of(inputs.begin(), inputs.end(),
                                         [&](const std::string& name) { return there.contains(name); });
    if (!reads_known) heads.push_back(i);
    for (const std::string& name : grads[i].OutputNames()) there.insert(name);
  }
  const Flow flow(grads);
  std::set<std::size_t> drop;
  for (const std::size_t head : heads) {
    for (const std::size_t op : flow.ClosureOf(head)) drop.insert(op);
  }
  // If all ops depend on one head, the head is the gradient of the loss itself.
  if (drop.size() == grads.size()) return grads;
  std::vector<Op> out;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!drop.contains(i)) out.push_back(std::move(grads[i]));
  }
  return out;
}

void LeaveOutParts(Op& sum, const GradNames& names, const std::function<bool(const std::string&)>& is_there) {
  if (sum.type() != "sum") return;
  std::vector<std::string> parts(sum.Input("X"));
  std::erase_if(parts, [&](const std::string& name) { return names.Contains(name) && !is_there(name); });
  if (!parts.empty() && parts.size() < sum.Input("X").size()) sum.AddInput("X", std::move(parts));
}

}  // namespace penstock
