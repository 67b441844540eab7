// What a server does with tables beside updating them: answers for single rows, and keeps those that are
// dealt out by id in files.
#include <algorithm>

#include "executor/pserver/state_machine.h"

namespace penstock::pserver {
namespace {

// How many questions of a trainer for rows may wait: nobody asks more.
constexpr std::size_t kWaitingRowsMax = 1024;

}  // namespace

void StateMachine::PullRows(const RowsEvent& pull, Actions& out) {
  if (ended_) return;
  Chunk& c = At(pull.param, 0);
  if (pull.version > c.version || c.loading >= 0) {
    const auto same = [&](const RowsEvent& other) {
      return other.trainer == pull.trainer && other.request == pull.request;
    };
    if (std::any_of(c.row_pulls.begin(), c.row_pulls.end(), same)) return;  // a repeat
    if (c.row_pulls.size() >= kWaitingRowsMax * static_cast<std::size_t>(config_.trainers)) {
      Fail(FailedPrecondition("E-rpc-credit", "trainer ", pull.trainer, " asked for rows of ",
                              config_.params[static_cast<std::size_t>(pull.param)].name, " while ",
                              c.row_pulls.size(), " such questions wait"),
           out);
      return;
    }
    c.row_pulls.push_back(pull);
    return;
  }
  // The version before the block that runs now is not kept: who asked for it has sent its gradient since.
  const bool here = pull.version == c.version && !c.running;
  out.emplace_back(ReplyAction{.trainer = pull.trainer,
                               .kind = here ? protocol::MessageKind::kRows : protocol::MessageKind::kRowsGone,
                               .param = pull.param,
                               .step = pull.version,
                               .rows = pull});
}

// A repeat of a question that is answered is answered again: the file stays as it is.
void StateMachine::Save(const SaveEvent& save, Actions& out) {
  if (ended_) return;
  if (save.request < trainers_[static_cast<std::size_t>(save.trainer)].saves_done) {
    AnswerSave(save.trainer, save.request, out);
    return;
  }
  std::vector<SaveEvent>& waiting = At(save.param, 0).saves;
  const auto same = [&](const SaveEvent& other) { return other.trainer == save.trainer; };
  if (std::any_of(waiting.begin(), waiting.end(), same)) return;
  waiting.push_back(save);
  StartSave(save.param, out);
}

void StateMachine::StartSave(int param, Actions& out) {
  Chunk& c = At(param, 0);
  if (c.running || c.saving || ended_) return;
  const auto ready = std::find_if(c.saves.begin(), c.saves.end(),
                                  [&](const SaveEvent& save) { return save.version <= c.version; });
  if (ready == c.saves.end()) return;
  std::iter_swap(c.saves.begin(), ready);
  c.saving = true;
  ++busy_;
  out.emplace_back(SaveAction{c.saves.front()});
}

void StateMachine::SaveDone(const SaveEvent& save, const Status& status, Actions& out) {
  Chunk& c = At(save.param, 0);
  Trainer& t = trainers_[static_cast<std::size_t>(save.trainer)];
  c.saves.erase(c.saves.begin());
  c.saving = false;
  --busy_;
  t.saves_done = std::uint64_t{save.request} + 1;
  t.save_status = status;
  if (!ended_) AnswerSave(save.trainer, save.request, out);
  StartSave(save.param, out);
  EndIfDrained(out);
}

void StateMachine::AnswerSave(int trainer, std::uint32_t request, Actions& out) {
  out.emplace_back(ReplyAction{.trainer = trainer,
                               .kind = protocol::MessageKind::kSaved,
                               .part = request,
                               .error = trainers_[static_cast<std::size_t>(trainer)].save_status});
}

}  // namespace penstock::pserver
