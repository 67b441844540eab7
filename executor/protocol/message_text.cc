#include "executor/protocol/message_text.h"

#include <array>
#include <optional>
#include <string_view>

#include "executor/protocol/message_parts.h"
#include "framework/base/environment.h"
#include "framework/base/log.h"
#include "framework/base/strings.h"

namespace penstock::protocol {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Event>> kEventNames = {
    "Hello",      "Push",         "EndStep", "CountStep",   "Pull",        "PullRows", "Save",
    "Ask",        "Complete",     "Failure", "PullChanged", "ServerHello", "Sums",     "RequestCut",
    "DeclareKey", "SetOptimizer", "Barrier", "CutKeys",     "CountGone"};
constexpr std::array<std::string_view, std::variant_size_v<Reply>> kReplyNames = {
    "Welcome", "Pushed",      "StepEnded",    "StepCounted",   "Pulled",        "PulledNewest",
    "Gone",    "Rows",        "RowsGone",     "Credit",        "Saved",         "Answer",
    "Left",    "Completed",   "Failure",      "ChangedRows",   "ServerWelcome", "SumsTaken",
    "Durable", "KeyDeclared", "OptimizerSet", "BarrierPassed", "KeysCut",       "GoneCounted"};

int Verbosity() {
  static const int level = [] {
    const Result<std::optional<std::int64_t>> set = env::Integer("PS_VERBOSE");
    if (!set.ok()) Log(LogSeverity::kWarning, set.status().ToString());
    return set.ok() ? static_cast<int>(set->value_or(0)) : 0;
  }();
  return level;
}

template <typename M>
constexpr int LevelOfOne() {
  return std::is_same_v<M, Push> || std::is_same_v<M, Pull> || std::is_same_v<M, PullRows> ||
                 std::is_same_v<M, Pushed> || std::is_same_v<M, Pulled> || std::is_same_v<M, PulledNewest> ||
                 std::is_same_v<M, Rows> || std::is_same_v<M, Credit>
             ? 2
             : 1;
}

template <typename M>
std::string TextOfOne(std::string_view name, const M& message) {
  const parts::Parts made = parts::PartsOf(message);
  const Envelope& at = made.envelope;
  std::string text = StrCat(name, " variable=", at.variable, " chunk=", at.chunk, " step=", at.step,
                            " part=", at.part, " bytes=", made.body.size());
  if constexpr (std::is_same_v<M, DeclareKey>) text += StrCat(" key=", Quote(message.body.name));
  return text;
}

}  // namespace

int LevelOf(const Event& event) {
  return std::visit([]<typename M>(const M&) { return LevelOfOne<M>(); }, event);
}

int LevelOf(const Reply& reply) {
  return std::visit([]<typename M>(const M&) { return LevelOfOne<M>(); }, reply);
}

bool ShowsMessage(const Event& event) { return Verbosity() > 0 && Verbosity() >= LevelOf(event); }
bool ShowsMessage(const Reply& reply) { return Verbosity() > 0 && Verbosity() >= LevelOf(reply); }

std::string TextOf(const Event& event) {
  return std::visit([&](const auto& each) { return TextOfOne(kEventNames[event.index()], each); }, event);
}

std::string TextOf(const Reply& reply) {
  return std::visit([&](const auto& each) { return TextOfOne(kReplyNames[reply.index()], each); }, reply);
}

}  // namespace penstock::protocol
