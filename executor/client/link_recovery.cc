// A server that may be started again by itself: what the link keeps for it, and sends again.
#include <algorithm>
#include <utility>

#include "executor/client/link.h"

namespace penstock::client {

bool Link::TakeIncarnation(const protocol::WelcomeBody& welcome) {
  const bool again = incarnation_ > 0 && welcome.incarnation > incarnation_;
  if (welcome.incarnation <= incarnation_) return false;
  incarnation_ = welcome.incarnation;
  window_below_ = welcome.version + welcome.window;
  if (again) BeginAgain(welcome.version);
  return again;
}

// The server has the gradients of steps below `version`, and has forgotten all else. What is in flight is
// sent again in its order, after what has been acknowledged.
void Link::BeginAgain(std::uint64_t version) {
  for (Variable& variable : variables_) {
    std::ranges::fill(variable.welcome_below, 0);
    ForgetNewest(variable);
  }
  ForgetNewestRows();
  ReleaseBelow(version);
  durable_version_ = std::max(durable_version_, version);
  std::vector<SentKey> moved;
  initial_left_ = 0;
  full_ = false;
  asked_for_credit_.reset();
  log_.ForEach([&](const SentKey& key, const protocol::Event& event) {
    if (const auto* push = std::get_if<protocol::Push>(&event)) {
      const Slot slot = slot_of_[push->at.variable];
      if (!variables_[slot].is_gradient) {
        ++initial_left_;
        return;
      }
      durable_.InFlight({slot, push->at.chunk}, *push);
      moved.push_back(key);
    } else if (const auto* end = std::get_if<protocol::EndStep>(&event)) {
      KeepEnded(*end);
      moved.push_back(key);
    } else if (const auto* count = std::get_if<protocol::CountStep>(&event)) {
      durable_.CountInFlight(count->step);
      moved.push_back(key);
    } else if (std::holds_alternative<protocol::Complete>(event)) {
      complete_sent_ = false;
      moved.push_back(key);
    }
  });
  for (const SentKey& key : moved) log_.Release(key);
  durable_.Rewind();
}

// A checkpoint has the gradients of the steps below. One that is in flight counts as acknowledged.
void Link::ReleaseBelow(std::uint64_t version) {
  std::vector<SentKey> taken;
  log_.ForEach([&](const SentKey& key, const protocol::Event& event) {
    const auto* push = std::get_if<protocol::Push>(&event);
    if (const auto* count = std::get_if<protocol::CountStep>(&event); count && count->step < version) {
      if (KeepCounted(count->step) && environment_.steps.EndPush(count->step)) changed_ = true;
      taken.push_back(key);
    }
    if (push == nullptr || push->step >= version || !variables_[slot_of_[push->at.variable]].is_gradient)
      return;
    if (KeepAcknowledged(*push)) EndPush(variables_[slot_of_[push->at.variable]], push->step);
    taken.push_back(key);
  });
  for (const SentKey& key : taken) log_.Release(key);
  durable_.Release(version);
}

// What the server gets before anything else. Gradients follow once it has the initial values.
void Link::SendAllAgain() {
  for (const auto& [at, initial] : durable_.initial()) {
    notes_.Resent();
    const bool is_new = SendKept(protocol::Push{
        .at = {variables_[at.slot].position, at.chunk}, .part = at.part, .bytes = initial.bytes});
    if (is_new) ++initial_left_;  // otherwise BeginAgain has counted it
  }
  for (const DurableLog::End& end : durable_.ends()) {
    std::vector<std::uint32_t> positions;
    for (const Slot slot : end.slots) positions.push_back(variables_[slot].position);
    std::ranges::sort(positions);
    SendKept(protocol::EndStep{.step = end.step, .variables = std::move(positions)});
  }
  for (const auto& [step, awaited] : durable_.counts()) SendKept(protocol::CountStep{.step = step});
  SendGradientsAgain();
}

// The number of updates that a part of a pull includes says which of two is newer. A server that was started
// again counts anew, so the numbers of before mean nothing, also those of pulls that have ended: the next one
// would wait for an answer with as many updates. A chunk of which only a part has come is received again.
void Link::ForgetNewest(Variable& variable) {
  Arriving& arriving = variable.arriving;
  std::ranges::fill(arriving.updates, 0);
  for (std::uint32_t chunk = 0; chunk < arriving.updates.size(); ++chunk) {
    if (arriving.parts_left[chunk] == 0) continue;
    const std::size_t parts = PartsOf(variable.cut.ChunkOf(chunk).size);
    arriving.parts_left[chunk] = static_cast<std::uint32_t>(parts);
    std::fill_n(arriving.have.begin() + static_cast<std::ptrdiff_t>(chunk * variable.cut.parts()), parts,
                PartIs::kMissing);
  }
}

void Link::ForgetNewestRows() {
  for (ArrivingRows& rows : rows_) {
    if (rows.whole || rows.updates == 0) continue;
    rows.updates = 0;
    rows.parts_left = rows.have.size();
    std::fill(rows.have.begin(), rows.have.end(), false);
  }
}

void Link::SendGradientsAgain() {
  for (const Slot slot : slot_of_) {
    if (slot == kNoSlot) continue;
    const std::size_t chunks = variables_[slot].cut.chunks;
    for (std::uint32_t chunk = 0; durable_.left() > 0 && chunk < chunks; ++chunk) SendAgain(slot, chunk);
  }
}

// As far as credit allows.
void Link::SendAgain(Slot slot, std::uint32_t chunk) {
  if (initial_left_ > 0 || !welcome_ || closed_) return;
  Variable& variable = variables_[slot];
  if (variable.welcome_below.size() <= chunk) variable.welcome_below.resize(chunk + std::size_t{1}, 0);
  const std::uint64_t below = std::max(variable.welcome_below[chunk], variable.by_turn ? 0 : window_below_);
  while (const DurableLog::Part* part = durable_.Next({slot, chunk})) {
    if (part->step >= below) return;
    protocol::Push push{.at = {variable.position, chunk},
                        .step = part->step,
                        .part = part->part,
                        .rows = part->rows,
                        .bytes = part->bytes};
    durable_.Sent({slot, chunk});
    notes_.Resent();
    SendKept(std::move(push));
  }
}

// A message with credit may have been lost.
void Link::AskForCredit(Nanoseconds now) {
  if (durable_.left() == 0 || !welcome_ || initial_left_ > 0) return;
  if (asked_for_credit_ && now - *asked_for_credit_ < environment_.options.resend_after) return;
  const bool first = !asked_for_credit_;
  asked_for_credit_ = now;
  if (first) return;
  for (const Slot slot : slot_of_) {
    if (slot == kNoSlot) continue;
    const Variable& variable = variables_[slot];
    for (std::uint32_t chunk = 0; chunk < variable.cut.chunks; ++chunk) {
      const DurableLog::Part* const part = durable_.Next({slot, chunk});
      if (part == nullptr) continue;
      SendMessage(
          protocol::Ask{
              .about = protocol::ChunkRef{variable.position, chunk}, .step = part->step, .waits_for = {}},
          sender_.contract);
    }
  }
}

bool Link::KeepAcknowledged(const protocol::Push& push) {
  if (!Recovers()) return true;
  const Slot slot = slot_of_[push.at.variable];
  if (variables_[slot].is_gradient) {
    const bool awaited = durable_.Acknowledged({slot, push.at.chunk}, push);
    // A new process of a trainer may repeat a step that is in a checkpoint already.
    if (push.step < durable_version_) durable_.Release(durable_version_);
    return awaited;
  }
  // The next two steps may be merged before it is stored.
  const bool awaited =
      durable_.AcknowledgedInitial({slot, push.at.chunk}, push, environment_.steps.step() + 2);
  if (initial_left_ > 0 && --initial_left_ == 0) SendGradientsAgain();
  return awaited;
}

void Link::KeepEnded(const protocol::EndStep& end) {
  if (!Recovers() || end.step < durable_version_) return;
  std::vector<Slot> slots;
  for (const std::uint32_t position : end.variables) slots.push_back(slot_of_[position]);
  durable_.Ended(end.step, std::move(slots));
}

bool Link::KeepCounted(std::uint64_t step) { return !Recovers() || durable_.Counted(step); }

// From the envelope of each reply.
void Link::TakeDurable(std::uint64_t version) {
  if (!Recovers() || version <= durable_version_) return;
  ReleaseBelow(version);
  durable_version_ = version;
  SendCompleteIfLast();
  asked_for_cut_.reset();
  if (!std::exchange(full_, false)) return;
  for (const Slot slot : slot_of_) {
    if (slot == kNoSlot) continue;
    if (pushes_waiting_ > 0) SendWaiting(variables_[slot]);
  }
}

// Whether gradients of the step may be sent and kept. A step that has begun is not held back, so each chunk
// gets the same steps.
bool Link::HasRoomFor(std::uint64_t step) {
  if (!Recovers() || step < begun_below_) return true;
  if (durable_.bytes() < environment_.options.retention_bytes) {
    begun_below_ = step + 1;
    full_ = false;
    return true;
  }
  full_ = true;
  RequestCut();
  return false;
}

// Once half of the log is full: while the server makes a checkpoint, the next steps fill the rest.
void Link::RequestCut() {
  if (!Recovers() || !welcome_ || closed_) return;
  const client::SessionOptions& options = environment_.options;
  if (durable_.bytes() < options.retention_bytes / 2 || durable_.bytes() == 0) return;
  const Nanoseconds now = options.clock->Now();
  if (asked_for_cut_ && now - *asked_for_cut_ < options.resend_after) return;
  asked_for_cut_ = now;
  SendMessage(protocol::RequestCut{.step = begun_below_}, sender_.contract);
}

}  // namespace penstock::client
