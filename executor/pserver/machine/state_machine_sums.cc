// Norms over all gradients: decisions between the last merge of a step and its first clipped update.
#include <utility>

#include "executor/pserver/machine/state_machine.h"

namespace penstock::pserver {

// Whether the chunk may be updated: it is not clipped, or the norms of its step are computed. If not, starts
// to measure the chunk.
bool StateMachine::MayUpdate(ChunkId at, Actions& out) {
  ChunkAccount& chunk = ledger_.chunk(at);
  if (!ledger_.param(at.param).clips || sums_.over() > chunk.version()) return true;
  if (!chunk.measured()) {
    chunk.SetMeasured();
    ++busy_;
    out.emplace_back(MeasureAction{.param = at.param, .chunk = at.chunk, .step = chunk.version()});
  }
  return false;
}

void StateMachine::MeasureDone(int, int, const Status& status, Actions& out) {
  if (ended_) return;
  if (!status.ok()) return Fail(status, out);
  --busy_;
  if (sums_.Measured()) {
    if (sums_.among_servers()) out.emplace_back(TellSumsAction{sums_.over()});
    CombineIfWhole(out);
  }
  EndIfDrained(out);
}

void StateMachine::TakeSums(int server, std::uint64_t step, Payload sums, Actions& out) {
  if (ended_) return;
  if (!sums_.Take(server, step, std::move(sums))) {
    return Fail(FailedPrecondition("E-rpc-credit", "another pserver sent its sums of step ", step,
                                   " where only those of steps below ", sums_.over() + 2, " were welcome"),
                out);
  }
  CombineIfWhole(out);
}

void StateMachine::CombineIfWhole(Actions& out) {
  if (!sums_.whole()) return;
  ++busy_;
  out.emplace_back(CombineAction{.step = sums_.over(), .sums = sums_.Begin()});
}

// Every clipped chunk is merged and measured, and waits for this.
void StateMachine::CombineDone(const Status& status, Actions& out) {
  if (ended_) return;
  if (!status.ok()) return Fail(status, out);
  --busy_;
  sums_.End();
  for (const ChunkId& at : ledger_.AllChunks()) {
    if (ledger_.param(at.param).clips) StartBlock(at, out);
  }
}

void StateMachine::SumsTaken(int server, std::uint64_t step, Actions& out) {
  sums_.Taken(server, step);
  EndIfDrained(out);
}

void StateMachine::ServerCompleted(int server, Actions& out) {
  sums_.Complete(server);
  EndIfDrained(out);
}

void StateMachine::ServerGone(int server, const Status& why, Actions& out) {
  if (!sums_.completed(server)) Fail(why, out);
}

}  // namespace penstock::pserver
