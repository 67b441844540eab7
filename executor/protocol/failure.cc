#include "executor/protocol/failure.h"

namespace penstock::protocol {
namespace {

// A connection counts as lost at least 8 s after a keepalive ping that was not answered.
constexpr Nanoseconds kSilence = std::chrono::seconds(8);

}  // namespace

Status FailureOf(std::string_view peer, const Status& why) {
  if (StartsWith(why.id(), "E-peer-")) return why;
  if (why.code() == StatusCode::kCancelled)
    return Unavailable("E-peer-interrupted", peer, " was interrupted");
  if (why.id() != kTrainerRaised) return Status(why).In(StrCat(peer, " failed"));
  Status failure = Unavailable("E-peer-failed", peer, " failed: ", why.message());
  for (const std::string& line : why.details()) failure.With(line);
  return failure;
}

std::string SilenceText(Nanoseconds since_heard) {
  if (since_heard < kSilence) return "";
  return StrCat(" after a silence of ", WholeSeconds(since_heard), " s");
}

std::string OutageText(Nanoseconds span) {
  const auto tenths = span / std::chrono::milliseconds(100);
  return StrCat(tenths / 10, ".", tenths % 10, " s");
}

}  // namespace penstock::protocol
