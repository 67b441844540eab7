#include "executor/protocol/contract.h"

#include <algorithm>

#include "framework/base/hash.h"

namespace penstock::protocol {
namespace {

int FindPiece(const std::vector<ContractPiece>& pieces, std::string_view name) {
  const auto at =
      std::lower_bound(pieces.begin(), pieces.end(), name,
                       [](const ContractPiece& piece, std::string_view n) { return piece.name < n; });
  return at != pieces.end() && at->name == name ? static_cast<int>(at - pieces.begin()) : -1;
}

}  // namespace

std::string Contract::ToText() const {
  std::string text;
  for (const ContractPiece& piece : params) text += StrCat("param ", piece, "\n");
  for (const ContractPiece& piece : starts) text += StrCat("start ", piece, "\n");
  for (const ContractPiece& piece : tables) text += StrCat("table ", piece, "\n");
  for (const ContractPiece& piece : grads) text += StrCat("grad ", piece, "\n");
  return text;
}

std::uint64_t Contract::Hash() const { return Fnv1a64(ToText()); }
int Contract::FindParam(std::string_view name) const { return FindPiece(params, name); }
int Contract::FindTable(std::string_view name) const {
  const int at = FindPiece(tables, name);
  return at < 0 ? -1 : static_cast<int>(params.size()) + at;
}
int Contract::FindGrad(std::string_view name) const {
  const int at = FindPiece(grads, name);
  return at < 0 ? -1 : static_cast<int>(params.size() + tables.size()) + at;
}
const ContractPiece& Contract::Variable(std::size_t position) const {
  if (position < params.size()) return params[position];
  position -= params.size();
  return position < tables.size() ? tables[position] : grads[position - tables.size()];
}
bool Contract::Starts(std::string_view name) const { return FindPiece(starts, name) >= 0; }

void SortByName(std::vector<ContractPiece>& pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const ContractPiece& a, const ContractPiece& b) { return a.name < b.name; });
}

namespace {

Status JoinInto(std::vector<ContractPiece>& pieces, const std::vector<ContractPiece>& more,
                const std::string& pserver) {
  pieces.insert(pieces.end(), more.begin(), more.end());
  SortByName(pieces);
  const auto same_name = [](const ContractPiece& a, const ContractPiece& b) { return a.name == b.name; };
  for (auto at = pieces.begin(); at + 1 < pieces.end(); ++at) {
    if (!same_name(*at, at[1]) || at->ToString() == at[1].ToString()) continue;
    return InvalidArgument("E-plan-mismatch", "plan: two programs of this process disagree about pserver ",
                           pserver)
        .With(StrCat("first difference:  ", *at, "   |   ", at[1]));
  }
  pieces.erase(std::unique(pieces.begin(), pieces.end(), same_name), pieces.end());
  return OkStatus();
}

}  // namespace

Result<Contract> Join(const Contract& a, const Contract& b, const std::string& pserver) {
  Contract joined = a;
  PENSTOCK_RETURN_IF_ERROR(JoinInto(joined.params, b.params, pserver));
  PENSTOCK_RETURN_IF_ERROR(JoinInto(joined.starts, b.starts, pserver));
  PENSTOCK_RETURN_IF_ERROR(JoinInto(joined.tables, b.tables, pserver));
  PENSTOCK_RETURN_IF_ERROR(JoinInto(joined.grads, b.grads, pserver));
  return joined;
}

std::string FirstDifference(const std::string& here, const std::string& there) {
  const std::vector<std::string> a = Split(here, '\n');
  const std::vector<std::string> b = Split(there, '\n');
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string_view left = i < a.size() && !a[i].empty() ? std::string_view(a[i]) : "(nothing)";
    const std::string_view right = i < b.size() && !b[i].empty() ? std::string_view(b[i]) : "(nothing)";
    if (left != right) return StrCat("line ", i + 1, ":  ", left, "   |   ", right);
  }
  return "";
}

}  // namespace penstock::protocol
