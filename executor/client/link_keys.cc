// Keys of a key-value store: variables that are added while the job runs. A value and its gradient are two
// variables, which the server numbers; their messages, credit, retries and arrivals are those of others.
#include <algorithm>
#include <utility>

#include "executor/client/link.h"
#include "executor/protocol/row_shards.h"
#include "framework/base/strings.h"

namespace penstock::client {
namespace {

constexpr std::uint32_t kLeaves = std::uint32_t{1} << 31;  // marks the numbers of such requests

}  // namespace

Slot Link::AddKeyVariable(protocol::ContractPiece piece, bool is_gradient) {
  const auto slot = static_cast<Slot>(variables_.size());
  Variable& variable = variables_.emplace_back();
  variable.position = kNoSlot;
  variable.is_gradient = is_gradient;
  variable.name = notes_.Name(piece.name);
  variable.traced = trace_.NameOf(piece.name);
  variable.key = std::make_unique<KeyState>();
  variable.key->piece = std::move(piece);
  return slot;
}

KeySlots Link::DeclareKey(const protocol::KeyBody& key) {
  const std::lock_guard lock(mutex_);
  protocol::ContractPiece piece{.name = key.name,
                                .dtype = static_cast<DType>(key.dtype),
                                .shape = Shape(std::span<const Dim>(key.shape))};
  KeySlots slots;
  slots.value = AddKeyVariable(piece, false);
  piece.rows = key.rows;
  slots.gradient = AddKeyVariable(std::move(piece), true);
  HandOver(PendingDeclare{slots, key});
  return slots;
}

void Link::LeaveKey(Slot value) {
  const std::lock_guard lock(mutex_);
  HandOver(PendingDeclare{{.value = value},
                          {.name = variables_[value].key->piece.name, .shape = {}, .leaves = true}});
}

void Link::Send(PendingDeclare& declare) {
  const std::uint32_t kind = declare.body.leaves ? kLeaves : 0;
  SendKept(protocol::DeclareKey{.request = declare.slots.value | kind, .body = std::move(declare.body)});
}

void Link::CutKey(Variable& variable, const protocol::KeyDeclaredBody& declared) const {
  const protocol::ContractPiece& piece = variable.key->piece;
  const auto rows = static_cast<std::uint64_t>(piece.shape[0]);
  const std::size_t row_bytes = static_cast<std::size_t>(piece.shape.RowWidth()) * SizeOf(piece.dtype);
  const std::size_t chunk = piece.rows ? rows : std::clamp<std::uint64_t>(declared.chunk_rows, 1, rows);
  variable.cut = {.chunks = piece.rows ? declared.shards : (rows + chunk - 1) / chunk,
                  .chunk_rows = chunk,
                  .bytes_per_chunk = chunk * row_bytes,
                  .bytes = rows * row_bytes,
                  .part_bytes = cut_.part_bytes,
                  .rows = piece.rows,
                  .shards = declared.shards,
                  .row_bytes = row_bytes};
}

// The gradient has the slot behind that of its value.
Status Link::On(const protocol::KeyDeclared& declared) {
  const Slot slot = declared.request;
  if ((slot & kLeaves) != 0) {
    Acknowledge(KeyOf(protocol::DeclareKey{.request = slot, .body = {}}));
    return OkStatus();
  }
  if (slot + std::size_t{1} >= variables_.size() || variables_[slot].key == nullptr) return OkStatus();
  if (variables_[slot].key->declared) return OkStatus();
  const bool is_valid = declared.body.chunk_rows > 0 && declared.variable < kNoSlot / 2 &&
                        declared.body.shards > 0 && declared.body.shards <= protocol::kShardsMax;
  if (declared.body.status.ok() && !is_valid)
    return DataLoss("E-rpc-welcome", "pserver ", address_, " sent an invalid chunk layout");
  for (const Slot each : {slot, slot + 1}) {
    Variable& variable = variables_[each];
    variable.key->declared = true;
    variable.key->status = declared.body.status;
    if (!declared.body.status.ok()) continue;
    variable.key->pushes = declared.body.pushes;
    variable.key->since = declared.body.since;
    variable.position = declared.variable + (each - slot);
    if (slot_of_.size() <= variable.position) slot_of_.resize(variable.position + std::size_t{1}, kNoSlot);
    slot_of_[variable.position] = each;
    CutKey(variable, declared.body);
    variable.welcome_below.assign(variable.cut.chunks, declared.welcome_below);
  }
  changed_ = true;
  Acknowledge(KeyOf(protocol::DeclareKey{.request = slot, .body = {}}));
  return OkStatus();
}

bool Link::KeyIsDeclared(Slot value) const {
  const std::lock_guard lock(mutex_);
  return variables_[value].key->declared;
}

Status Link::KeyStatus(Slot value) const {
  const std::lock_guard lock(mutex_);
  return variables_[value].key->status;
}

std::uint64_t Link::KeyPushes(Slot value) const {
  const std::lock_guard lock(mutex_);
  return variables_[value].key->pushes;
}

VariableCut Link::KeyCut(Slot value) const {
  const std::lock_guard lock(mutex_);
  return variables_[value].cut;
}

void Link::SetKey(Slot value, Bytes bytes) { PushKey(value, {.bytes = std::move(bytes)}); }

void Link::PushKey(Slot slot, KeyPush push) {
  std::unique_lock lock(mutex_);
  const std::size_t plain_bytes = push.threshold > 0 ? variables_[slot].cut.bytes : 0;
  (void)Push(lock, PendingPush{.slot = slot,
                               .step = push.step,
                               .value = {.bytes = std::move(push.bytes), .plain_bytes = plain_bytes},
                               .largest = push.largest,
                               .priority = push.priority,
                               .threshold = push.threshold,
                               .at_once = push.at_once});  // nothing is checked: no error
}

void Link::EndKeyPush(KeyState& key, std::uint64_t step) {
  --key.open[step - key.done_below];
  for (; !key.open.empty() && key.open.front() == 0; ++key.done_below) {
    key.open.pop_front();
    changed_ = true;
  }
}

bool Link::KeyPushesDone(Slot slot, std::uint64_t below) const {
  const std::lock_guard lock(mutex_);
  const KeyState& key = *variables_[slot].key;
  return key.open.empty() || key.done_below >= below;
}

Status Link::PullKey(Slot value, Tensor& out, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  KeyState& key = *variables_[value].key;
  const auto [place, is_new] = key.pulls.try_emplace(version);
  if (!is_new) {
    return FailedPrecondition("E-recv-twice", "version ", version, " of ", key.piece.name,
                              " is being received already");
  }
  out.Refit(key.piece.dtype, key.piece.shape);
  BeginPull(place->second, Landing::kAlone, version);
  place->second.to = Target::Of(out);
  HandOver(PendingPull{value, version});
  return OkStatus();
}

// Chunks of which the requested version was sent have no number of updates.
void Link::EndKeyPull(KeyState& key, Arriving& arriving) {
  const std::uint64_t version = arriving.version;
  Updates& updates = key.pulled[version] = {version, version};
  if (!arriving.updates.empty()) {
    const auto [least, most] = std::ranges::minmax(arriving.updates);
    updates = {std::max(least, version), std::max(most, version)};
  }
  EndPull(arriving);
  key.pulls.erase(version);
}

bool Link::FollowsPull(const PendingPush& push) const {
  const Variable& variable = variables_[push.slot];
  if (variable.key == nullptr || !variable.is_gradient) return false;
  const KeyState& value = *variables_[push.slot - 1].key;
  const auto precedes = [&](std::uint64_t version) { return version <= push.step; };
  return (!value.pulls.empty() && precedes(value.pulls.begin()->first)) ||
         (!value.rows.empty() && precedes(*value.rows.begin()));
}

void Link::SendPushesBehind(const Variable& value) {
  SendWaiting(variables_[slot_of_[value.position] + std::size_t{1}]);
}

std::optional<Link::Updates> Link::TakePulled(Slot value, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  KeyState& key = *variables_[value].key;
  const auto found = key.pulled.find(version);
  if (found == key.pulled.end()) return std::nullopt;
  const Updates updates = found->second;
  key.pulled.erase(found);
  return updates;
}

Link::Requests Link::PullKeyRows(Slot value, std::span<const std::int64_t> ids, Tensor& to,
                                 std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  const auto next = [&] { return first_request_ + static_cast<std::uint32_t>(rows_.size()); };
  const std::uint32_t begin = next();
  RequestRows(value, ids, to, version);
  for (std::uint32_t request = begin; request < next(); ++request)
    variables_[value].key->rows.insert(version);
  return {begin, next()};
}

bool Link::RowsAreThere(const Requests& requests) const {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t request = std::max(requests.begin, first_request_); request < requests.end; ++request) {
    if (!rows_[request - first_request_].whole) return false;
  }
  return true;
}

void Link::SetOptimizer(std::uint64_t number, const std::string& text, bool keeps_state) {
  const std::lock_guard lock(mutex_);
  HandOver(protocol::SetOptimizer{
      .number = number, .keeps_state = keeps_state ? std::uint32_t{1} : 0, .text = text});
}

void Link::Send(protocol::SetOptimizer& set) { SendKept(std::move(set)); }

Status Link::On(const protocol::OptimizerSet& set) {
  if (!Acknowledge(KeyOf(protocol::SetOptimizer{.number = set.number, .text = {}}))) return OkStatus();
  optimizers_[set.number] = set.status;
  changed_ = true;
  return OkStatus();
}

std::optional<Status> Link::OptimizerStatus(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = optimizers_.find(number);
  return found == optimizers_.end() ? std::nullopt : std::optional(found->second);
}

void Link::EnterBarrier(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  HandOver(protocol::Barrier{.number = number});
}

void Link::Send(protocol::Barrier& barrier) { SendKept(std::move(barrier)); }

// A process that was started again may be told of a later barrier than its own.
Status Link::On(const protocol::BarrierPassed& passed) {
  for (std::uint64_t number = barrier_ + 1; number <= passed.number; ++number) {
    if (!Acknowledge(KeyOf(protocol::Barrier{.number = number}))) break;
    barrier_ = number;
    changed_ = true;
  }
  return OkStatus();
}

std::uint64_t Link::cut_every() const {
  const std::lock_guard lock(mutex_);
  return cut_.cut_every;
}

bool Link::was_welcome() const {
  const std::lock_guard lock(mutex_);
  return was_welcome_;
}

void Link::CutKeys(std::uint64_t step, const std::vector<KeyCount>& pushes) {
  const std::lock_guard lock(mutex_);
  protocol::CutKeys cut{.step = step, .pushes = {}};
  for (const KeyCount& key : pushes) cut.pushes.push_back({variables_[key.value].position, key.pushes});
  HandOver(std::move(cut));
}

void Link::Send(protocol::CutKeys& cut) { SendKept(std::move(cut)); }

Status Link::On(const protocol::KeysCut& cut) {
  if (!Acknowledge(KeyOf(protocol::CutKeys{.step = cut.step, .pushes = {}}))) return OkStatus();
  cut_taken_ = std::max(cut_taken_, cut.step);
  changed_ = true;
  return OkStatus();
}

bool Link::CutIsTaken(std::uint64_t step) const {
  const std::lock_guard lock(mutex_);
  return cut_taken_ >= step;
}

std::uint64_t Link::KeySince(Slot value) const {
  const std::lock_guard lock(mutex_);
  return variables_[value].key->since;
}

std::uint32_t Link::CountGone() {
  const std::lock_guard lock(mutex_);
  HandOver(protocol::CountGone{.request = ++counts_});
  return counts_;
}

void Link::Send(protocol::CountGone& count) { SendKept(count); }

Status Link::On(const protocol::GoneCounted& counted) {
  if (!Acknowledge(KeyOf(protocol::CountGone{.request = counted.request}))) return OkStatus();
  gone_ = {{counted.request, counted.workers}};
  changed_ = true;
  return OkStatus();
}

std::optional<std::uint64_t> Link::GoneCount(std::uint32_t request) const {
  const std::lock_guard lock(mutex_);
  const auto found = gone_.lower_bound(request);  // a later answer is as good
  return found == gone_.end() ? std::nullopt : std::optional(found->second);
}

bool Link::is_lost() const {
  const std::lock_guard lock(mutex_);
  return lost_.has_value();
}

bool Link::BarrierIsPassed(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return barrier_ >= number;
}

}  // namespace penstock::client
