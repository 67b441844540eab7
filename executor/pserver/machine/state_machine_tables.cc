// Requests for single rows of tables, and requests to save tables and slices of parameters.
#include <algorithm>
#include <utility>

#include "executor/pserver/machine/state_machine.h"

namespace penstock::pserver {
namespace {

// How many requests for rows may wait per trainer. No trainer sends more.
constexpr std::size_t kWaitingRowsMax = 1024;

}  // namespace

void StateMachine::PullRows(const RowsEvent& pull, Actions& out) {
  if (ended_) return;
  const ChunkId at{pull.param, pull.chunk};
  if (const Status there = ledger_.CheckChunk(pull.trainer, "asked for rows of", at); !there.ok())
    return Fail(there, out);
  ChunkAccount& account = ledger_.chunk(at);
  // Rows are gathered from the table itself: while a block runs, there is no copy of the previous version.
  const PullAnswer answer = account.loading() || account.awaited()
                                ? PullAnswer::kWait
                                : policy_->Pull(ledger_, at, pull.trainer, pull.version, !account.running());
  if (answer == PullAnswer::kNow || answer == PullAnswer::kNewest) {
    out.emplace_back(ReplyAction{pull.trainer, RowsReply{pull, answer == PullAnswer::kNewest}});
    return;
  }
  if (answer == PullAnswer::kGone) {
    out.emplace_back(
        ReplyAction{pull.trainer, protocol::RowsGone{.variable = pull.variable,
                                                     .request = static_cast<std::uint32_t>(pull.request),
                                                     .version = pull.version}});
    return;
  }
  const auto same = [&](const RowsEvent& other) {
    return other.trainer == pull.trainer && other.request == pull.request;
  };
  if (std::any_of(account.row_pulls.begin(), account.row_pulls.end(), same)) return;  // a retry
  if (account.row_pulls.size() >= kWaitingRowsMax * static_cast<std::size_t>(ledger_.trainers())) {
    Fail(FailedPrecondition("E-rpc-credit", "trainer ", pull.trainer, " asked for rows of ",
                            ledger_.param(pull.param).name, " while ", account.row_pulls.size(),
                            " such requests are pending"),
         out);
    return;
  }
  account.row_pulls.push_back(pull);
}

// A retry of an answered request gets the same answer; the file is not written again.
void StateMachine::Save(const SaveEvent& save, Actions& out) {
  if (ended_) return;
  if (save.request < ledger_.trainer(save.trainer).saves_done) {
    AnswerSave(save.trainer, save.request, out);
    return;
  }
  std::vector<SaveEvent>& waiting = ledger_.chunk({save.param, 0}).saves;
  const auto same = [&](const SaveEvent& other) { return other.trainer == save.trainer; };
  if (std::any_of(waiting.begin(), waiting.end(), same)) return;
  waiting.push_back(save);
  StartSave(save.param, out);
}

// A param is saved once the requesting trainer could pull the requested version, or a later one.
void StateMachine::StartSave(int param, Actions& out) {
  ChunkAccount& account = ledger_.chunk({param, 0});
  if (account.saves.empty() || account.saving || ended_) return;
  const auto chunks = static_cast<int>(ledger_.param(param).bytes_of_chunks.size());
  const auto ready = std::find_if(account.saves.begin(), account.saves.end(), [&](const SaveEvent& save) {
    for (int k = 0; k < chunks; ++k) {
      const ChunkId at{param, k};
      if (ledger_.chunk(at).running()) return false;
      if (policy_->Pull(ledger_, at, save.trainer, save.version, true) == PullAnswer::kWait) return false;
    }
    return true;
  });
  if (ready == account.saves.end()) return;
  std::iter_swap(account.saves.begin(), ready);
  account.saving = true;
  ++busy_;
  out.emplace_back(SaveAction{account.saves.front()});
}

void StateMachine::SaveDone(const SaveEvent& save, const Status& status, Actions& out) {
  ChunkAccount& account = ledger_.chunk({save.param, 0});
  TrainerAccount& trainer = ledger_.trainer(save.trainer);
  account.saves.erase(account.saves.begin());
  account.saving = false;
  --busy_;
  if (!std::exchange(trainer.saves_for_last, false)) {
    trainer.saves_done = std::uint64_t{save.request} + 1;
    trainer.save_status = status;
    if (!ended_) AnswerSave(save.trainer, save.request, out);
  }
  StartSave(save.param, out);
  EndIfDrained(out);
}

void StateMachine::AnswerSave(int trainer, std::uint32_t request, Actions& out) {
  out.emplace_back(ReplyAction{trainer, protocol::Saved{request, ledger_.trainer(trainer).save_status}});
}

}  // namespace penstock::pserver
