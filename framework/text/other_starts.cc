#include "framework/text/other_starts.h"

#include "framework/base/strings.h"

namespace penstock {
namespace {

constexpr std::string_view kStartOf = "start of ";

}  // namespace

void LeaveStartToAnother(const std::string& variable, ProgramMeta& meta) {
  meta.policies[StrCat(kStartOf, variable)] = "another program";
}

bool AnotherStarts(std::string_view variable, const ProgramMeta& meta) {
  return meta.policies.contains(StrCat(kStartOf, variable));
}

bool RecordsAStart(std::string_view policy) { return policy.starts_with(kStartOf); }

}  // namespace penstock
