// Pushes of keys that wait because much is on its way to the server already: the most urgent goes first,
// chunk by chunk, so one of a large key does not hold up one of a small key that is needed sooner.
#include "executor/client/link.h"

namespace penstock::client {
namespace {

// A push of a smaller part of the window waits for nothing: it delays others less than the order costs. Of
// the usual window, what travels in batches.
constexpr std::size_t kSmallPart = 512;

}  // namespace

bool Link::TakesTurn(const Variable& variable, const PendingPush& push) {
  const std::size_t size = push.value.ChunkOf(CutOf(variable, push), push.chunk).size;
  const std::size_t window = environment_.options.push_window;
  if (size <= window / kSmallPart) return true;
  const Turn turn = TurnOf(push);
  const bool fits = log_.push_bytes() == 0 || log_.push_bytes() + size <= window;
  if (fits && (turns_.empty() || !(*turns_.begin() < turn))) return true;
  turns_.insert(turn);
  return false;
}

// A push that waits for something else too, such as credit, leaves its place, and gets it again when that has
// come.
void Link::SendByPriority() {
  while (!turns_.empty() && welcome_ && !closed_) {
    const Turn first = *turns_.begin();
    turns_.erase(turns_.begin());
    SendWaiting(variables_[first.slot]);
    if (turns_.contains(first)) return;  // there is no room
  }
}

}  // namespace penstock::client
