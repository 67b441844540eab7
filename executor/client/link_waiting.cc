// Describes what a link waits for. Used only for reports of waits, the first after ten seconds, so it may
// visit every variable.
#include <algorithm>

#include "executor/client/link.h"

namespace penstock::client {

const Link::Arriving* Link::FirstArriving(const Variable& variable) {
  if (variable.key == nullptr) return variable.arriving.active ? &variable.arriving : nullptr;
  return variable.key->pulls.empty() ? nullptr : &variable.key->pulls.begin()->second;
}

const Link::Variable* Link::FirstPull() const {
  if (pulls_ == 0) return nullptr;
  for (const Slot slot : slot_of_) {
    if (slot != kNoSlot && FirstArriving(variables_[slot]) != nullptr) return &variables_[slot];
  }
  return nullptr;
}

const Link::ArrivingRows* Link::FirstRows() const { return rows_.empty() ? nullptr : &rows_.front(); }

// The first chunk with missing parts; 0 if the pull has not been sent yet.
std::uint32_t Link::FirstChunkOf(const Arriving& arriving) {
  if (arriving.chunks_left == 0) return 0;
  const auto& left = arriving.parts_left;
  return static_cast<std::uint32_t>(
      std::find_if(left.begin(), left.end(), [](std::uint32_t parts) { return parts > 0; }) - left.begin());
}

void Link::Ask(const std::string& waits_for) {
  const std::lock_guard lock(mutex_);
  answer_.clear();
  if (closed_ || !welcome_) return;
  protocol::Ask ask{.about = {}, .step = 0, .waits_for = waits_for};
  if (const Variable* pulled = FirstPull()) {
    ask.about = {.variable = pulled->position, .chunk = FirstChunkOf(*FirstArriving(*pulled))};
    ask.step = FirstArriving(*pulled)->version;
  } else if (const ArrivingRows* rows = FirstRows()) {
    ask.about = {.variable = variables_[rows->slot].position, .chunk = rows->shard};
    ask.step = rows->version;
  }
  SendMessage(ask, sender_.contract);
}

Link::Waiting Link::WaitsFor() const {
  const std::lock_guard lock(mutex_);
  const bool has_more =
      lost_ || !environment_.steps.joined() || !before_welcome_.empty() || pushes_waiting_ > 0 || completing_;
  const Nanoseconds now = environment_.options.clock->Now();
  Waiting waiting{.silent = now - (was_welcome_ ? heard_ : since_), .notes = notes_};
  if (!welcome_ && !completed_ && has_more) {
    waiting.urgency = Urgency::kNoWelcome;
    const std::string for_what = lost_ && lost_->ended ? StrCat(" to be started again (", lost_->how, ")")
                                 : lost_        ? StrCat(" to be within reach again (", lost_->how, ")")
                                 : was_welcome_ ? std::string(" to accept the program")
                                                : std::string(" to start (nothing answers there yet)");
    waiting.text = StrCat("pserver ", address_, for_what);
    return waiting;
  }
  if (full_) {
    waiting.urgency = Urgency::kNoVersion;
    waiting.text = StrCat("a checkpoint of pserver ", address_, ": this trainer keeps ", durable_.bytes(),
                          " bytes of gradients that none has, and may keep ",
                          environment_.options.retention_bytes, " (PENSTOCK_RETENTION_MB)");
    return waiting;
  }
  const std::string because = answer_.empty() ? std::string() : StrCat(", which waits for ", answer_);
  if (const ArrivingRows* rows = FirstRows()) {
    waiting.urgency = Urgency::kNoVersion;
    waiting.variable = variables_[rows->slot].name;
    waiting.text = StrCat("rows of version ", rows->version, " of ", PieceOf(variables_[rows->slot]).name,
                          " on pserver ", address_, because);
    return waiting;
  }
  if (const Variable* pulled = FirstPull()) {
    const protocol::ContractPiece& piece = PieceOf(*pulled);
    std::string range;
    if (FirstArriving(*pulled)->chunks_left > 0 && piece.shape.rank() > 0) {
      const std::uint64_t begin = FirstChunkOf(*FirstArriving(*pulled)) * pulled->cut.chunk_rows;
      const auto end =
          std::min<std::uint64_t>(begin + pulled->cut.chunk_rows, static_cast<std::uint64_t>(piece.shape[0]));
      range = StrCat(" (rows ", begin, "-", end, ")");
    }
    waiting.urgency = Urgency::kNoVersion;
    waiting.variable = pulled->name;
    waiting.text = StrCat("version ", FirstArriving(*pulled)->version, " of ", piece.name, range,
                          " on pserver ", address_, because);
    return waiting;
  }
  if (!log_.empty() || !before_welcome_.empty() || pushes_waiting_ > 0 || (completing_ && !completed_)) {
    waiting.urgency = Urgency::kNoAnswer;
    const Open open = FirstOpen();
    waiting.variable = open.variable;
    waiting.text = StrCat("pserver ", address_, " to take ", open.what, because);
    return waiting;
  }
  return {};
}

// Describes what the server has not acknowledged: the message sent longest ago, or a gradient
// without credit.
Link::Open Link::FirstOpen() const {
  if (!log_.empty()) {
    const protocol::Event& event = log_.oldest().event;
    if (const auto* push = std::get_if<protocol::Push>(&event)) {
      const Variable& variable = variables_[slot_of_[push->at.variable]];
      return {StrCat(PieceOf(variable).name, " of step ", push->step, ", which was sent"), variable.name};
    }
    if (const auto* end = std::get_if<protocol::EndStep>(&event))
      return {StrCat("the end of step ", end->step, ", which was sent")};
    if (std::holds_alternative<protocol::Save>(event)) return {"the request to save a table, which was sent"};
    if (std::holds_alternative<protocol::Barrier>(event)) return {"all workers to its barrier"};
    if (std::holds_alternative<protocol::CutKeys>(event)) return {"the cut of a checkpoint, which was sent"};
    if (std::holds_alternative<protocol::Complete>(event)) return {"the end of this trainer, which was sent"};
    return {"what was sent"};
  }
  for (const Variable& variable : variables_) {
    if (variable.waiting.empty()) continue;
    return {StrCat(PieceOf(variable).name, " of step ", variable.waiting.front().step,
                   ", for which there is no room yet"),
            variable.name};
  }
  return {"the next message"};
}

}  // namespace penstock::client
