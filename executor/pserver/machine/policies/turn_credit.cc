#include "executor/pserver/machine/policies/turn_credit.h"

namespace penstock::pserver {

TurnCredit::TurnCredit(const MachineConfig& config) : trainers_(config.trainers), most_(config.early_bytes) {
  for (const MachineConfig::Param& param : config.params)
    chunks_.push_back(param.by_turn ? param.bytes_of_chunks.size() : 0);
  lines_.resize(Index(static_cast<int>(config.params.size()), 0));
  for (std::size_t p = 0; p < config.params.size(); ++p) {
    for (int t = 0; t < trainers_; ++t) At(static_cast<int>(p), t).given = config.first_version * chunks_[p];
  }
}

std::uint64_t TurnCredit::Below(ChunkId at, int trainer) const {
  const std::uint64_t chunks = chunks_[static_cast<std::size_t>(at.param)];
  return (At(at.param, trainer).given + chunks - 1 - static_cast<std::uint64_t>(at.chunk)) / chunks;
}

// Whether the trainer's next chunk of the param may be granted, apart from the limit of bytes.
bool TurnCredit::IsNear(const ChunkLedger& ledger, int param, int trainer) const {
  if (ledger.trainer(trainer).completed) return false;
  const std::uint64_t chunks = chunks_[static_cast<std::size_t>(param)];
  const std::uint64_t given = At(param, trainer).given;
  const std::uint64_t step = given / chunks;
  if (step > ledger.low_version()) return false;
  int before = trainer - 1;
  while (before > 0 && ledger.trainer(before).completed) --before;
  if (before > 0 && At(param, before).given <= given) return false;
  const ChunkAccount& chunk = ledger.chunk({param, static_cast<int>(given % chunks)});
  return chunk.version() > step || chunk.merged() + 1 >= trainer;
}

// Grants the trainer's next chunk of the param. Returns false if it would exceed the limit of bytes now.
bool TurnCredit::GiveOne(const ChunkLedger& ledger, int param, int trainer, std::vector<Grant>& out) {
  Line& line = At(param, trainer);
  const std::uint64_t chunks = chunks_[static_cast<std::size_t>(param)];
  const ChunkId at{param, static_cast<int>(line.given % chunks)};
  const std::size_t bytes = ledger.chunk(at).bytes();
  if (bytes_ > 0 && bytes_ + bytes > most_) return false;
  bytes_ += bytes;
  ++line.given;
  out.push_back({at, trainer});
  return true;
}

std::vector<Grant> TurnCredit::Give(const ChunkLedger& ledger, int param) {
  std::vector<Grant> out;
  for (int t = 1; t < trainers_ && chunks_[static_cast<std::size_t>(param)] > 0; ++t) {
    if (At(param, t).waits || !IsNear(ledger, param, t)) continue;
    At(param, t).waits = true;
    waiting_.emplace_back(param, t);
  }
  while (!waiting_.empty()) {
    const auto [p, t] = waiting_.front();
    const bool near = IsNear(ledger, p, t);
    if (near && !GiveOne(ledger, p, t, out)) break;
    if (near && t + 1 < trainers_ && !At(p, t + 1).waits && IsNear(ledger, p, t + 1)) {
      At(p, t + 1).waits = true;  // it waited for this grant
      waiting_.emplace_back(p, t + 1);
    }
    if (near) continue;
    At(p, t).waits = false;
    waiting_.pop_front();
  }
  return out;
}

void TurnCredit::Merged(ChunkId at, int trainer, std::uint64_t step, std::size_t bytes) {
  const bool was_given = trainer > 0 && step < Below(at, trainer);  // otherwise it had no grant
  if (was_given) bytes_ -= bytes;
}

}  // namespace penstock::pserver
