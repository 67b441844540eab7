#include "executor/plan/receive_early.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "executor/plan/lives.h"
#include "executor/plan/step_ends.h"
#include "framework/ir/block_uses.h"
#include "framework/roles/views.h"

namespace penstock::exec {
namespace {

// The last instruction of a step that mentions each name, not counting what the step receives, and the last
// send of each parameter's gradient.
class LastUses {
 public:
  LastUses(const CompiledBlock& block, const StepEnds& step) : step_(step) {
    for (int i = 0; i < step.fetch_barrier; ++i) {
      const Op& op = *block.instructions[static_cast<std::size_t>(i)].op;
      const roles::Comm comm = roles::CommOf(op);
      if (i > step.send_barrier && comm == roles::Comm::kRecv) continue;
      for (const Slot& slot : op.inputs()) Mention(slot.args, i);
      for (const Slot& slot : op.outputs()) Mention(slot.args, i);
      for (const int started : StartedBlocks(op)) MentionInside(block.program, started, i);
      if (comm == roles::Comm::kSend) sent_[std::string(roles::PairOf(op).param)] = i;
    }
  }
  // False if an instruction runs a block whose uses cannot be determined.
  bool known() const { return known_; }

  // Returns the instruction, before the send_barrier, after which the recv may run; nullopt if the recv must
  // stay in its place.
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

// Whether the recv writes rows of a temporary, whose life would have to begin with it.
bool ReceivesIntoTemporaries(const CompiledBlock& block, const Instruction& recv) {
  const auto is_view = [&](int slot) {
    const int whole = slot < 0 ? -1 : block.slots[static_cast<std::size_t>(slot)].view_of;
    return whole >= 0 && block.slots[static_cast<std::size_t>(whole)].home == Home::kFrame;
  };
  return std::ranges::any_of(recv.outputs,
                             [&](const auto& row) { return std::ranges::any_of(row, is_view); });
}

// By instruction: the recvs that move to the place after it.
std::unordered_map<int, std::vector<int>> Moves(const CompiledBlock& block) {
  const std::optional<StepEnds> step = FindStep(block);
  if (!step) return {};
  const LastUses uses(block, *step);
  if (!uses.known()) return {};
  std::unordered_map<int, std::vector<int>> received_after;
  for (int i = step->send_barrier + 1; i < step->fetch_barrier; ++i) {
    const Instruction& recv = block.instructions[static_cast<std::size_t>(i)];
    if (roles::CommOf(*recv.op) != roles::Comm::kRecv || ReceivesIntoTemporaries(block, recv)) continue;
    if (const std::optional<int> after = uses.After(*recv.op)) received_after[*after].push_back(i);
  }
  return received_after;
}

Instruction OfNextVersion(Instruction recv) {
  Op op = *recv.op;
  roles::RecvView::AskForNext(op);
  recv.op = std::make_shared<const Op>(std::move(op));
  return recv;
}

}  // namespace

std::shared_ptr<const CompiledBlock> ReceiveEarly(std::shared_ptr<const CompiledBlock> block) {
  if (!block->effects.Has(Effect::kStep)) return block;
  const std::unordered_map<int, std::vector<int>> received_after = Moves(*block);
  if (received_after.empty()) return block;

  const std::vector<Instruction>& before = block->instructions;
  std::vector<bool> moves(before.size(), false);
  for (const auto& [after, recvs] : received_after) {
    for (const int recv : recvs) moves[static_cast<std::size_t>(recv)] = true;
  }
  auto out = std::make_shared<CompiledBlock>(*block);
  out->instructions.clear();
  std::vector<int> moved_to(before.size());
  std::vector<bool> received(block->slots.size(), false);
  const auto append = [&](int from, Instruction instruction) {
    moved_to[static_cast<std::size_t>(from)] = static_cast<int>(out->instructions.size());
    out->instructions.push_back(std::move(instruction));
  };
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!moves[i]) append(static_cast<int>(i), before[i]);
    const auto follow = received_after.find(static_cast<int>(i));
    if (follow == received_after.end()) continue;
    for (const int recv : follow->second) {
      const Instruction& instruction = before[static_cast<std::size_t>(recv)];
      for (const std::vector<int>& row : instruction.outputs) {
        for (const int slot : row) {
          if (slot >= 0) received[static_cast<std::size_t>(slot)] = true;
        }
      }
      append(recv, OfNextVersion(instruction));
    }
  }
  MoveLives(*out, moved_to, received);
  return out;
}

}  // namespace penstock::exec
