#include "executor/pserver/machine/chunk_ledger.h"

#include <algorithm>

#include "framework/text/compression.h"

namespace penstock::pserver {
namespace {

// The maximum number of parts of a sparse gradient. No trainer sends more, so a message that claims more is
// invalid.
constexpr std::size_t kPartsMax = std::size_t{1} << 20;

}  // namespace

bool PartSet::Add(const PushEvent& push, std::size_t bytes, std::size_t part_bytes) {
  if (have_.empty()) {
    rows_ = push.rows;
    largest_ = push.largest;
    threshold_ = push.threshold;
    missing_ = std::max<std::size_t>(1, (bytes + part_bytes - 1) / part_bytes);
    parts_.resize(missing_);
    have_.resize(missing_);
  }
  if (rows_ != push.rows || threshold_ != push.threshold) return false;
  if (!have_[push.part]) {
    have_[push.part] = true;
    parts_[push.part] = push.bytes;
    --missing_;
  }
  return true;
}

void PartSet::MoveTo(MergeAction& merge) {
  merge.parts = std::move(parts_);
  merge.rows = rows_;
  merge.largest = largest_;
  merge.threshold = threshold_;
}

void ChunkAccount::BeginAt(std::uint64_t version, const std::vector<MachineConfig::Start>& starts) {
  version_ = version;
  for (std::size_t t = 0; t < from_.size(); ++t) {
    from_[t].taken = from_[t].applied = starts.empty() ? version : starts[t].taken;
    if (version > 0) initial_of_.insert(static_cast<int>(t));  // its initial value, if any, is in it
  }
}

bool ChunkAccount::whole(int trainer, std::uint64_t step) const {
  const Sequence& from = From(trainer);
  return step >= from.taken && step - from.taken < from.ahead.size() && from.ahead[step - from.taken].whole();
}

std::uint64_t ChunkAccount::whole_below(int trainer) const {
  const Sequence& from = From(trainer);
  const auto first = std::find_if_not(from.ahead.begin(), from.ahead.end(),
                                      [](const PartSet& gradient) { return gradient.whole(); });
  return from.taken + static_cast<std::uint64_t>(first - from.ahead.begin());
}

void ChunkAccount::Forget(int trainer, std::uint64_t from_step) {
  Sequence& from = From(trainer);
  const std::uint64_t kept = from_step < from.taken ? 0 : from_step - from.taken;
  for (; from.ahead.size() > kept; from.ahead.pop_back()) {
    if (!from.ahead.back().whole()) continue;
    const auto last = std::find(arrived_.rbegin(), arrived_.rend(), trainer);
    arrived_.erase(std::next(last).base());
  }
}

bool ChunkAccount::has_ahead() const {
  return std::any_of(from_.begin(), from_.end(), [](const Sequence& from) { return !from.ahead.empty(); });
}

bool ChunkAccount::Collect(const PushEvent& push, std::size_t bytes, std::size_t part_bytes) {
  Sequence& from = From(push.trainer);
  const std::uint64_t ahead = push.step - from.taken;
  if (from.ahead.size() <= ahead) from.ahead.resize(ahead + 1);
  PartSet& gradient = from.ahead[ahead];
  if (gradient.absent()) return false;
  const bool was_whole = gradient.whole();
  if (!gradient.Add(push, bytes, part_bytes)) return false;
  if (!was_whole && gradient.whole()) arrived_.push_back(push.trainer);
  return true;
}

int ChunkAccount::first_here() const {
  const auto may_be_taken = [&](int trainer) {
    return here(trainer) &&
           (take_below_ == nullptr || taken(trainer) < (*take_below_)[static_cast<std::size_t>(trainer)]);
  };
  const auto first = std::find_if(arrived_.begin(), arrived_.end(), may_be_taken);
  return first == arrived_.end() ? -1 : *first;
}

bool ChunkAccount::HasAllBelowTheLimit() const {
  for (std::size_t t = 0; t < from_.size(); ++t)
    if (from_[t].applied < (*take_below_)[t]) return false;
  return true;
}

bool ChunkAccount::Skip(int trainer, std::uint64_t step, std::uint64_t waiting_max) {
  Sequence& from = From(trainer);
  if (step < from.taken) return true;
  const std::uint64_t ahead = step - from.taken;
  if (ahead > waiting_max) return false;
  if (from.ahead.size() <= ahead) from.ahead.resize(ahead + 1);
  from.ahead[ahead].SetAbsent();
  const bool level = from.applied == from.taken;
  PassAbsent(from);
  if (level) from.applied = from.taken;
  return true;
}

void ChunkAccount::PassAbsent(Sequence& from) {
  while (!from.ahead.empty() && from.ahead.front().absent()) {
    from.ahead.erase(from.ahead.begin());
    ++from.taken;
  }
}

PartSet ChunkAccount::Take(int trainer) {
  Sequence& from = From(trainer);
  ++from.taken;
  last_taken_ = trainer;
  if (from.ahead.empty()) return {};
  PartSet gradient = std::move(from.ahead.front());
  from.ahead.erase(from.ahead.begin());
  if (gradient.whole()) arrived_.erase(std::find(arrived_.begin(), arrived_.end(), trainer));
  PassAbsent(from);
  return gradient;
}

void ChunkAccount::Drop(int trainer) {
  const bool level = From(trainer).applied == taken(trainer);
  Take(trainer);
  if (level) From(trainer).applied = taken(trainer);
}

void ChunkAccount::StartMerge(MergeAction& merge) {
  merging_ = true;
  merge.step = taken(merge.trainer);
  fed_ = fed_ || here(merge.trainer);
  PartSet gradient = Take(merge.trainer);
  if (gradient.whole()) gradient.MoveTo(merge);
}

void ChunkAccount::EndMerge() {
  merging_ = false;
  awaited_ = false;
  ++merged_;
}

void ChunkAccount::EndBlock() {
  ++version_;
  merged_ = missing_ = 0;
  fed_ = running_ = published_ = measured_ = false;
  for (Sequence& from : from_) from.applied = from.taken;
}

void ChunkAccount::CollectInitial(const PushEvent& push, std::size_t part_bytes) {
  // A trainer sends the value before its first gradient, so after version 0 it can only be a retry.
  if (version_ == 0 && loading_ != push.trainer && !initial_of_.contains(push.trainer))
    initial_[push.trainer].Add(push, bytes_, part_bytes);
}

bool ChunkAccount::StartInitial(MergeAction& merge) {
  const auto whole =
      std::find_if(initial_.begin(), initial_.end(), [](const auto& value) { return value.second.whole(); });
  if (whole == initial_.end()) return false;
  merging_ = true;
  loading_ = whole->first;
  merge.trainer = whole->first;
  whole->second.MoveTo(merge);
  merge.initial = true;
  merge.rows = 0;  // it is dense
  initial_.erase(whole);
  return true;
}

void ChunkAccount::EndInitial() {
  merging_ = published_ = awaited_ = false;
  initial_of_.insert(std::exchange(loading_, -1));
}

ChunkLedger::ChunkLedger(MachineConfig config)
    : config_(std::move(config)),
      trainers_(static_cast<std::size_t>(config_.trainers)),
      low_version_(config_.first_version) {
  for (const MachineConfig::Param& param : config_.params) AddChunks(param, config_.first_version);
  for (TrainerAccount& trainer : trainers_) trainer.steps_ended = trainer.steps_begun = config_.first_version;
  for (std::size_t t = 0; t < config_.starts.size(); ++t) {
    const MachineConfig::Start& start = config_.starts[t];
    trainers_[t].steps_ended = trainers_[t].steps_begun = start.ended;
    trainers_[t].reported = trainers_[t].counted = start.counted;
  }
  CountLow();
}

void ChunkLedger::AddChunks(const MachineConfig::Param& param, std::uint64_t version) {
  std::vector<ChunkAccount>& chunks = chunks_.emplace_back();
  for (const std::size_t bytes : param.bytes_of_chunks)
    chunks.emplace_back(config_.trainers, bytes,
                        !param.restored && (param.start || (param.is_key && !param.by_id)));
  if (param.start) return;
  for (ChunkAccount& chunk : chunks) chunk.BeginAt(version, config_.starts);
}

int ChunkLedger::AddParam(MachineConfig::Param param, std::uint64_t version) {
  AddChunks(param, version);
  low_version_ = UpdatedChunks() == 0 ? version : std::min(low_version_, version);
  config_.params.push_back(std::move(param));
  CountLow();
  return static_cast<int>(chunks_.size()) - 1;
}

void ChunkLedger::CountLow() {
  at_low_version_ = 0;
  for (std::size_t p = 0; p < chunks_.size(); ++p) {
    if (config_.params[p].start) continue;
    at_low_version_ += static_cast<std::size_t>(
        std::count_if(chunks_[p].begin(), chunks_[p].end(),
                      [&](const ChunkAccount& chunk) { return chunk.version() == low_version_; }));
  }
}

std::vector<ChunkId> ChunkLedger::AllChunks() const {
  std::vector<ChunkId> all;
  for (std::size_t p = 0; p < chunks_.size(); ++p) {
    for (std::size_t k = 0; k < chunks_[p].size(); ++k)
      all.push_back({static_cast<int>(p), static_cast<int>(k)});
  }
  return all;
}

std::size_t ChunkLedger::UpdatedChunks() const {
  std::size_t count = 0;
  for (const MachineConfig::Param& param : config_.params)
    count += param.start ? 0 : param.bytes_of_chunks.size();
  return count;
}

bool ChunkLedger::AllCompleted() const {
  return std::all_of(trainers_.begin(), trainers_.end(),
                     [](const TrainerAccount& trainer) { return trainer.completed; });
}

bool ChunkLedger::AnyCompleted() const { return std::ranges::any_of(trainers_, &TrainerAccount::completed); }

bool ChunkLedger::NobodyIsLeft() const {
  return std::all_of(trainers_.begin(), trainers_.end(),
                     [](const TrainerAccount& trainer) { return trainer.completed || trainer.lost; });
}

bool ChunkLedger::BeginsAfter(std::uint64_t step) const {
  return std::any_of(trainers_.begin(), trainers_.end(), [&](const TrainerAccount& trainer) {
    return !trainer.completed && !trainer.lost && step < trainer.absent_below;
  });
}

bool ChunkLedger::IsMissing(int trainer, std::uint64_t step) const {
  const TrainerAccount& account = this->trainer(trainer);
  return !account.completed && (account.lost || step < account.absent_below);
}

bool ChunkLedger::IsAbsent(int trainer, std::uint64_t step) const {
  const TrainerAccount& account = this->trainer(trainer);
  return (account.completed && step >= account.steps_ended) || IsMissing(trainer, step);
}

void ChunkLedger::StartBlock(ChunkId at) {
  ++running_blocks_;
  chunk(at).StartBlock();
}

// A chunk that has applied a step's gradient stays so: the search continues at the chunk where it stopped.
void ChunkLedger::FindDueCount() {
  count_is_due_ = false;
  if (counted_.empty()) return;
  const auto [trainer, step] = counted_.front();
  for (; count_waits_for_.param < static_cast<int>(chunks_.size()); ++count_waits_for_.param) {
    if (param(count_waits_for_.param).start) continue;
    const auto& chunks = chunks_[Row(count_waits_for_)];
    for (; count_waits_for_.chunk < static_cast<int>(chunks.size()); ++count_waits_for_.chunk)
      if (chunk(count_waits_for_).applied(trainer) <= step) return;
    count_waits_for_.chunk = 0;
  }
  count_is_due_ = true;
}

void ChunkLedger::AddCounted(CountedStep step) {
  const auto later = std::ranges::find_if(counted_, [&](const CountedStep& other) {
    return other.trainer == step.trainer && other.step > step.step;
  });
  if (later == counted_.begin()) count_waits_for_ = {};
  counted_.insert(later, step);
}

CountedStep ChunkLedger::TakeCounted() {
  const CountedStep first = counted_.front();
  counted_.pop_front();
  ++counts_taken_;
  trainer(first.trainer).counted.Add(first.step);
  count_waits_for_ = {};
  FindDueCount();
  return first;
}

bool ChunkLedger::EndBlock(ChunkId at) {
  --running_blocks_;
  ChunkAccount& account = chunk(at);
  const bool was_low = account.version() == low_version_;
  account.EndBlock();
  if (!was_low || --at_low_version_ > 0) return false;
  ++low_version_;
  CountLow();
  return true;
}

std::size_t ChunkLedger::PushedBytes(const PushEvent& push) const {
  const MachineConfig::Param& of = param(push.param);
  if (!push.initial && of.pushed_row_bytes > 0) return push.rows * of.pushed_row_bytes;
  if (!push.initial && !of.compressed_bytes.empty())
    return of.compressed_bytes[static_cast<std::size_t>(push.chunk)];
  const std::size_t bytes = chunk({push.param, push.chunk}).bytes();
  if (push.threshold > 0) {
    const Compression how{.kind = Compression::Kind::kTwoBit, .threshold = push.threshold};
    return static_cast<std::size_t>(how.Bytes(static_cast<std::int64_t>(bytes / sizeof(float))));
  }
  return bytes;
}

Status ChunkLedger::CheckChunk(int trainer, const char* did, ChunkId at) const {
  const MachineConfig::Param& of = param(at.param);
  if (at.chunk >= 0 && static_cast<std::size_t>(at.chunk) < of.bytes_of_chunks.size()) return OkStatus();
  return InvalidArgument("E-rpc-chunk", "trainer ", trainer, " ", did, " chunk ", at.chunk, " of ", of.name,
                         ", which has ", of.bytes_of_chunks.size());
}

Status ChunkLedger::CheckPush(const PushEvent& push) const {
  PENSTOCK_RETURN_IF_ERROR(CheckChunk(push.trainer, "pushed", {push.param, push.chunk}));
  const MachineConfig::Param& of = param(push.param);
  if (of.pushed_row_bytes > 0 && !push.initial &&
      push.rows > kPartsMax * config_.part_bytes / of.pushed_row_bytes) {
    return InvalidArgument("E-rpc-size", "trainer ", push.trainer, " pushed ", push.rows, " rows of ",
                           of.name, ", which are too many for a message of ", kPartsMax, " parts");
  }
  if (push.threshold > 0 && (push.initial || !of.compressible)) {
    return InvalidArgument("E-rpc-size", "trainer ", push.trainer, " pushed compressed values of ", of.name,
                           ", which takes them as they are");
  }
  const std::size_t bytes = PushedBytes(push);
  const std::size_t begin = push.part * config_.part_bytes;
  const bool within = begin < bytes || (bytes == 0 && push.part == 0);  // zero rows travel as one part
  if (within && push.bytes.size() == std::min(config_.part_bytes, bytes - begin)) return OkStatus();
  return InvalidArgument("E-rpc-size", "trainer ", push.trainer, " pushed ", push.bytes.size(),
                         " bytes as part ", push.part, " of a chunk of ", of.name, " that has ", bytes);
}

}  // namespace penstock::pserver
