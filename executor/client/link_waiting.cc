// What a link waits for, in words: asked for once in ten seconds, so it may look at every variable.
#include <algorithm>

#include "executor/client/link.h"

namespace penstock::client {

const Link::Variable* Link::FirstPull() const {
  if (pulls_ == 0) return nullptr;
  for (const Slot slot : slot_of_) {
    if (variables_[slot].arriving.active) return &variables_[slot];
  }
  return nullptr;
}

const Link::ArrivingRows* Link::FirstRows() const { return rows_.empty() ? nullptr : &rows_.front(); }

// 0 of one that was not sent yet.
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
    ask.about = {.variable = pulled->position, .chunk = FirstChunkOf(pulled->arriving)};
    ask.step = pulled->arriving.version;
  } else if (const ArrivingRows* rows = FirstRows()) {
    ask.about = {.variable = variables_[rows->slot].position, .chunk = 0};
    ask.step = rows->version;
  }
  SendMessage(ask, sender_.contract);
}

Link::Waiting Link::WaitsFor() const {
  const std::lock_guard lock(mutex_);
  const bool has_more = !before_welcome_.empty() || pushes_waiting_ > 0 || completing_;
  if (!welcome_ && !completed_ && has_more) {
    return {Urgency::kNoWelcome,
            StrCat("pserver ", address_,
                   was_welcome_ ? " to accept the program" : " to start (nothing answers there yet)")};
  }
  const std::string because = answer_.empty() ? std::string() : StrCat(", which waits for ", answer_);
  if (const ArrivingRows* rows = FirstRows()) {
    return {Urgency::kNoVersion,
            StrCat("rows of version ", rows->version, " of ", PieceOf(variables_[rows->slot]).name,
                   " on pserver ", address_, because)};
  }
  if (const Variable* pulled = FirstPull()) {
    const protocol::ContractPiece& piece = PieceOf(*pulled);
    std::string range;
    if (pulled->arriving.chunks_left > 0 && piece.shape.rank() > 0) {
      const std::uint64_t begin = FirstChunkOf(pulled->arriving) * pulled->chunk_rows;
      const auto end =
          std::min<std::uint64_t>(begin + pulled->chunk_rows, static_cast<std::uint64_t>(piece.shape[0]));
      range = StrCat(" (rows ", begin, "-", end, ")");
    }
    return {Urgency::kNoVersion, StrCat("version ", pulled->arriving.version, " of ", piece.name, range,
                                        " on pserver ", address_, because)};
  }
  if (!log_.empty() || !before_welcome_.empty() || pushes_waiting_ > 0 || (completing_ && !completed_))
    return {Urgency::kNoAnswer, StrCat("pserver ", address_, " to take what was sent")};
  return {};
}

}  // namespace penstock::client
