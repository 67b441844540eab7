#include "framework/text/policies.h"

#include <charconv>
#include <string>
#include <utility>

#include "framework/base/strings.h"

namespace penstock {
namespace {

// Null if the policy is not set.
const std::string* Find(const ProgramMeta& meta, const char* name) {
  const auto found = meta.policies.find(name);
  return found == meta.policies.end() ? nullptr : &found->second;
}

Result<int> ReadCount(const char* name, std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return InvalidArgument("E-policy-value", "policy ", name, " must be an integer from 0 on, not ",
                         Quote(text));
}

void Set(ProgramMeta& meta, const char* name, std::string value, bool asked) {
  if (asked) {
    meta.policies[name] = std::move(value);
  } else {
    meta.policies.erase(name);
  }
}

}  // namespace

Result<JobPolicies> ReadPolicies(const ProgramMeta& meta) {
  JobPolicies out;
  if (const std::string* text = Find(meta, kStalenessPolicy)) {
    PENSTOCK_ASSIGN_OR_RETURN(out.staleness, ReadCount(kStalenessPolicy, *text));
  }
  if (const std::string* text = Find(meta, kBackupTrainersPolicy)) {
    PENSTOCK_ASSIGN_OR_RETURN(out.backup_trainers, ReadCount(kBackupTrainersPolicy, *text));
  }
  if (const std::string* text = Find(meta, kOnUnevenPolicy)) {
    const std::optional<OnUneven> known = OnUnevenFromName(*text);
    if (!known || *known == OnUneven::kNone) {
      return InvalidArgument("E-policy-value", "policy on_uneven must be join, pad or error, not ",
                             Quote(*text));
    }
    out.on_uneven = *known;
  }
  if (const std::string* text = Find(meta, kRowsPolicy)) {
    PENSTOCK_ASSIGN_OR_RETURN(out.rows, ParseRowPolicies(*text));
  }
  if (const std::string* text = Find(meta, kCompressionPolicy)) {
    PENSTOCK_ASSIGN_OR_RETURN(out.compression, ParseCompression(*text));
    if (!out.compression.all.none()) {
      return InvalidArgument("E-policy-value", "policy compression must name the variable of each rule; ",
                             out.compression.all, " names none");
    }
  }
  return out;
}

void WritePolicies(const JobPolicies& policies, ProgramMeta& meta) {
  Set(meta, kStalenessPolicy, StrCat(policies.staleness.value_or(0)), policies.staleness.has_value());
  Set(meta, kBackupTrainersPolicy, StrCat(policies.backup_trainers), policies.backup_trainers > 0);
  Set(meta, kOnUnevenPolicy, std::string(OnUnevenName(policies.on_uneven)),
      policies.on_uneven != OnUneven::kNone);
  Set(meta, kRowsPolicy, ToString(policies.rows), !policies.rows.empty());
  Set(meta, kCompressionPolicy, policies.compression.ToString(), !policies.compression.empty());
}

}  // namespace penstock
