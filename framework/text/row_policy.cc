#include "framework/text/row_policy.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "framework/base/strings.h"
#include "framework/text/cursor.h"

namespace penstock {
namespace {

constexpr std::int64_t kStepsMost = std::int64_t{1} << 40;
constexpr std::int64_t kBudgetMost = std::int64_t{1} << 30;  // 1 PB

class RowPolicyParser {
 public:
  explicit RowPolicyParser(std::string_view text) : in_(text, "row policy") {}

  Result<RowPolicy> One() {
    RowPolicy policy;
    PENSTOCK_RETURN_IF_ERROR(Rules(policy));
    if (!in_.AtEnd()) return in_.Error(StrCat("expected entry, evict, budget_mb or cold_dir, ", in_.Found()));
    return policy;
  }

  Result<RowPolicies> Several() {
    RowPolicies policies;
    while (!in_.AtEnd()) {
      const Token begin = in_.Peek();
      PENSTOCK_ASSIGN_OR_RETURN(std::string name, in_.Name("the name of a table"));
      PENSTOCK_RETURN_IF_ERROR(in_.Expect(":"));
      RowPolicy policy;
      PENSTOCK_RETURN_IF_ERROR(Rules(policy));
      if (!policies.emplace(std::move(name), policy).second)
        return in_.ErrorAt(begin, StrCat(SpellName(begin.text), " has two policies"));
      if (!follows_ && !in_.AtEnd()) return in_.Error(StrCat("expected \",\", ", in_.Found()));
    }
    return policies;
  }

 private:
  // The rules of one table, and a comma behind them if another table follows.
  Status Rules(RowPolicy& policy) {
    PENSTOCK_RETURN_IF_ERROR(EachRule(policy));
    if (!policy.has_cold() || policy.budget_mb > 0) return OkStatus();
    return InvalidArgument("E-row-policy-value", "row policy: cold_dir ", Quote(policy.cold_dir),
                           " needs budget_mb, beyond which rows go there");
  }

  Status EachRule(RowPolicy& policy) {
    follows_ = false;
    do {
      const Token begin = in_.Peek();
      if (in_.TakeIf("entry")) {
        PENSTOCK_RETURN_IF_ERROR(Entry(begin, policy));
      } else if (in_.TakeIf("evict")) {
        PENSTOCK_RETURN_IF_ERROR(Evict(begin, policy));
      } else if (in_.TakeIf("budget_mb")) {
        if (policy.budget_mb > 0) return Twice(begin, "budget_mb");
        PENSTOCK_RETURN_IF_ERROR(Count("budget_mb", kBudgetMost, policy.budget_mb));
      } else if (in_.TakeIf("cold_dir")) {
        if (policy.has_cold()) return Twice(begin, "cold_dir");
        PENSTOCK_ASSIGN_OR_RETURN(policy.cold_dir, in_.String("a folder"));
        if (policy.cold_dir.empty()) return Wrong("cold_dir", "a folder", Quote(""));
      } else {
        return in_.Error(StrCat("expected entry, evict, budget_mb or cold_dir, ", in_.Found()));
      }
      if (!in_.TakeIf(",")) return OkStatus();
    } while (!(in_.AtName() && in_.PeekSecond().text == ":"));
    follows_ = true;
    return OkStatus();
  }

  Status Entry(const Token& begin, RowPolicy& policy) {
    if (policy.has_entry()) return Twice(begin, "entry");
    if (in_.TakeIf("count")) return Count("entry count", kCountMost, policy.entry_count);
    if (!in_.TakeIf("probability")) return in_.Error(StrCat("expected count or probability, ", in_.Found()));
    PENSTOCK_ASSIGN_OR_RETURN(policy.entry_probability, Number());
    if (policy.entry_probability > 0 && policy.entry_probability <= 1) return OkStatus();
    return Wrong("entry probability", "above 0 and at most 1", policy.entry_probability);
  }

  Status Evict(const Token& begin, RowPolicy& policy) {
    if (in_.TakeIf("unseen")) {
      if (policy.unseen > 0) return Twice(begin, "evict unseen");
      return Count("evict unseen", kStepsMost, policy.unseen);
    }
    if (in_.TakeIf("count")) {
      if (policy.count > 0) return Twice(begin, "evict count");
      PENSTOCK_RETURN_IF_ERROR(Count("evict count", kCountMost, policy.count));
      PENSTOCK_RETURN_IF_ERROR(in_.Expect("after"));
      return Count("the steps of evict count", kStepsMost, policy.count_after);
    }
    if (!in_.TakeIf("shows")) return in_.Error(StrCat("expected unseen, count or shows, ", in_.Found()));
    if (policy.shows > 0) return Twice(begin, "evict shows");
    PENSTOCK_ASSIGN_OR_RETURN(policy.shows, Number());
    if (!(policy.shows > 0 && std::isfinite(policy.shows)))
      return Wrong("evict shows", "above 0", policy.shows);
    PENSTOCK_RETURN_IF_ERROR(in_.Expect("decay"));
    PENSTOCK_ASSIGN_OR_RETURN(policy.decay, Number());
    if (!(policy.decay > 0 && policy.decay < 1))
      return Wrong("the decay of evict shows", "above 0 and below 1", policy.decay);
    PENSTOCK_RETURN_IF_ERROR(in_.Expect("every"));
    return Count("the steps of evict shows", kStepsMost, policy.decay_every);
  }

  Status Count(std::string_view rule, std::int64_t most, std::int64_t& to) {
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
    PENSTOCK_ASSIGN_OR_RETURN(to,
                              in_.Integer("an integer", kLeast, std::numeric_limits<std::int64_t>::max()));
    if (to >= 1 && to <= most) return OkStatus();
    return Wrong(rule, StrCat("from 1 to ", most), to);
  }

  Result<double> Number() {
    const TokenKind kind = in_.Peek().kind;
    if (kind != TokenKind::kInt && kind != TokenKind::kFloat)
      return in_.Error(StrCat("expected a number, ", in_.Found()));
    const Token token = in_.Take();
    double value = std::numeric_limits<double>::infinity();  // of a number that is too large
    std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    return value;
  }

  Status Twice(const Token& begin, std::string_view rule) {
    return in_.ErrorAt(begin, StrCat("there are two rules ", rule));
  }

  template <typename T>
  static Status Wrong(std::string_view rule, std::string_view range, T value) {
    return InvalidArgument("E-row-policy-value", "row policy: ", rule, " must be ", range, ", not ", value);
  }

  static constexpr std::int64_t kCountMost = 1'000'000'000;  // a row's counter has 32 bits

  Cursor in_;
  bool follows_ = false;  // another table
};

}  // namespace

std::string RowPolicy::ToString() const {
  std::vector<std::string> rules;
  if (entry_count > 0) rules.push_back(StrCat("entry count ", entry_count));
  if (entry_probability > 0) rules.push_back(StrCat("entry probability ", entry_probability));
  if (unseen > 0) rules.push_back(StrCat("evict unseen ", unseen));
  if (count > 0) rules.push_back(StrCat("evict count ", count, " after ", count_after));
  if (shows > 0) rules.push_back(StrCat("evict shows ", shows, " decay ", decay, " every ", decay_every));
  if (budget_mb > 0) rules.push_back(StrCat("budget_mb ", budget_mb));
  if (has_cold()) rules.push_back(StrCat("cold_dir ", Quote(cold_dir)));
  return Join(rules, ", ");
}

Result<RowPolicy> ParseRowPolicy(std::string_view text) { return RowPolicyParser(text).One(); }

std::string ToString(const RowPolicies& policies) {
  std::vector<std::string> tables;
  for (const auto& [name, policy] : policies)
    tables.push_back(StrCat(SpellName(name), ": ", policy.ToString()));
  return Join(tables, ", ");
}

Result<RowPolicies> ParseRowPolicies(std::string_view text) { return RowPolicyParser(text).Several(); }

}  // namespace penstock
