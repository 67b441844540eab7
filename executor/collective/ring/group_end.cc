#include "executor/collective/ring/group_end.h"

#include <string>
#include <utility>

#include "executor/collective/group/error_lines.h"
#include "executor/collective/group/plain_data.h"

namespace penstock::collective {
namespace {

constexpr char kLost[] = "E-collective-peer-lost";
constexpr char kLeft[] = "E-collective-peer-left";

Notice NoticeOf(const Status& why) {
  Notice notice{.kind = Notice::kFailed};
  WriteText(notice.id, why.id());
  WriteText(notice.message, LinesOf(why));
  return notice;
}

}  // namespace

GroupEnd::GroupEnd(Links& links, RankNames names, ProcessStateOf state_of)
    : links_(links),
      names_(std::move(names)),
      state_of_(std::move(state_of)),
      left_(static_cast<std::size_t>(links.size())) {
  links_.Listen([this](int from, const Notice& notice) { Hear(from, notice); });
}

Status GroupEnd::Failure() const {
  if (!failed_) return OkStatus();
  const std::lock_guard lock(mutex_);
  return failure_;
}

Status GroupEnd::Fail(const Status& why) {
  if (Record(why)) TellAll(NoticeOf(why));
  return Failure();
}

void GroupEnd::Abort(const Status& why) {
  if (!Record(why)) return;
  TellAll(
      NoticeOf(Unavailable(kLeft, "rank ", names_(links_.rank()), " has left the group: ", why.message())));
}

Status GroupEnd::Of(int rank, LinkEnd end, const Signature& what) {
  const std::atomic<bool>& left = left_[static_cast<std::size_t>(rank)];
  // A notice that the rank sent before its connection ended may still be on its way in this process. A
  // process that dies loses its connections a little before it is gone.
  if (end == LinkEnd::kBroken)
    links_.Linger([&] { return failed_ || left || StateOf(rank) == ProcessState::kEnded; });
  if (failed_) return Failure();
  if (left) {
    return Fail(Unavailable(kLeft, "rank ", names_(rank), " has left the group: it takes no part in ",
                            Describe(what, names_)));
  }
  return Fail(Lost(rank, what));
}

Status GroupEnd::Lost(int rank, const Signature& what) const {
  const std::string part = StrCat("before it had done its part in ", Describe(what, names_));
  switch (StateOf(rank)) {
    case ProcessState::kEnded:
      return Unavailable(kLost, "rank ", names_(rank), " is gone: its process ended ", part);
    case ProcessState::kRuns:
      return Unavailable("E-collective-link-broken", "the connection to rank ", names_(rank),
                         ", whose process still runs, was broken ", part);
    case ProcessState::kUnknown:
      break;
  }
  return Unavailable(kLost, "rank ", names_(rank), " is gone: its connection ended ", part);
}

void GroupEnd::Leave() {
  TellAll(Notice{.kind = Notice::kLeft});
  links_.Close();
}

void GroupEnd::Hear(int from, const Notice& notice) {
  if (notice.kind == Notice::kLeft) {
    left_[static_cast<std::size_t>(from)] = true;
    return;
  }
  // Another process wrote the notice, so its contents may be invalid.
  if (Record(FromOtherRank(ReadText(notice.id), ReadText(notice.message)))) TellAll(notice);
}

bool GroupEnd::Record(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return false;
    failure_ = why;
    failed_ = true;
  }
  links_.Interrupt();
  return true;
}

void GroupEnd::TellAll(const Notice& notice) {
  for (int rank = 0; rank < links_.size(); ++rank) {
    if (rank != links_.rank()) links_.Tell(rank, notice);
  }
}

}  // namespace penstock::collective
