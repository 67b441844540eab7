#include "executor/graph/receive_order.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "framework/ir/block_uses.h"
#include "framework/roles/views.h"

namespace penstock::exec {
namespace {

// The positions of the two barriers between which a step receives.
struct StepEnds {
  int send_barrier = -1;
  int fetch_barrier = -1;
};

// Returns nullopt if the block has no such step, or several.
std::optional<StepEnds> FindStep(const std::vector<OpEntry>& ops) {
  StepEnds step;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const roles::Comm comm = roles::CommOf(*ops[i].op);
    if (comm != roles::Comm::kSendBarrier && comm != roles::Comm::kFetchBarrier) continue;
    int& place = comm == roles::Comm::kSendBarrier ? step.send_barrier : step.fetch_barrier;
    if (place >= 0 || roles::BarrierView(*ops[i].op).half_async()) return std::nullopt;
    place = static_cast<int>(i);
  }
  if (step.send_barrier < 0 || step.fetch_barrier < step.send_barrier) return std::nullopt;
  return step;
}

// The last op of a step that mentions each name, not counting what the step receives, and the last send of
// each parameter's gradient.
class LastUses {
 public:
  LastUses(const Program& program, int block, const StepEnds& step) : step_(step) {
    const std::vector<OpEntry>& ops = program.block(block).ops();
    for (int i = 0; i < step.fetch_barrier; ++i) {
      const Op& op = *ops[static_cast<std::size_t>(i)].op;
      const roles::Comm comm = roles::CommOf(op);
      if (i > step.send_barrier && comm == roles::Comm::kRecv) continue;
      for (const Slot& slot : op.inputs()) Mention(slot.args, i);
      for (const Slot& slot : op.outputs()) Mention(slot.args, i);
      for (const int started : StartedBlocks(op)) MentionInside(program, started, i);
      if (comm == roles::Comm::kSend) sent_[std::string(roles::PairOf(op).param)] = i;
    }
  }
  // False if an op runs a block whose uses cannot be determined.
  bool known() const { return known_; }

  // Returns the position of the op, before the send_barrier, after which the recv may run; nullopt if the
  // recv must stay in its place.
  std::optional<int> After(const Op& op) const {
    const roles::RecvView recv(op);
    const std::string param(roles::PairOf(op).param);
    if (param.empty() || recv.by_communicator() || recv.idle()) return std::nullopt;
    const int sent = At(sent_, param);
    if (sent < 0) return std::nullopt;
    int after = std::max(sent, At(mentioned_, param));
    for (const std::string& name : recv.variables()) after = std::max(after, At(mentioned_, name));
    return after < step_.send_barrier ? std::optional(after) : std::nullopt;
  }

 private:
  using Positions = std::unordered_map<std::string, int>;

  template <typename Names>
  void Mention(const Names& names, int at) {
    for (const std::string& name : names) mentioned_[name] = at;
  }
  void MentionInside(const Program& program, int started, int at) {
    const Result<std::vector<std::string>> names = OuterNames(program, started);
    known_ &= names.ok();
    if (names.ok()) Mention(*names, at);
  }
  static int At(const Positions& positions, const std::string& name) {
    const auto found = positions.find(name);
    return found == positions.end() ? -1 : found->second;
  }

  const StepEnds step_;
  Positions mentioned_, sent_;
  bool known_ = true;
};

}  // namespace

std::vector<OrderedOp> OrderOfProgram(const Program& program, int block) {
  std::vector<OrderedOp> order(program.block(block).ops().size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i].position = static_cast<int>(i);
  return order;
}

std::vector<OrderedOp> OrderWithEarlyReceives(const Program& program, int block) {
  const std::vector<OpEntry>& ops = program.block(block).ops();
  const std::optional<StepEnds> step = FindStep(ops);
  if (!step) return OrderOfProgram(program, block);
  const LastUses uses(program, block, *step);
  if (!uses.known()) return OrderOfProgram(program, block);
  std::unordered_map<int, std::vector<int>> received_after;
  std::vector<bool> moved(ops.size());
  for (int i = step->send_barrier + 1; i < step->fetch_barrier; ++i) {
    const Op& op = *ops[static_cast<std::size_t>(i)].op;
    if (roles::CommOf(op) != roles::Comm::kRecv) continue;
    if (const std::optional<int> after = uses.After(op)) {
      received_after[*after].push_back(i);
      moved[static_cast<std::size_t>(i)] = true;
    }
  }
  std::vector<OrderedOp> order;
  order.reserve(ops.size());
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    if (!moved[static_cast<std::size_t>(i)]) order.push_back({i});
    const auto received = received_after.find(i);
    if (received == received_after.end()) continue;
    for (const int recv : received->second) order.push_back({recv, true});
  }
  return order;
}

}  // namespace penstock::exec
