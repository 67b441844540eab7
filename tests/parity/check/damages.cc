#include "tests/parity/check/damages.h"

#include "operators/all_ops.h"

namespace penstock::test {

bool ChangeFirst(Program& program, const std::string& type, const std::function<void(Op&)>& change) {
  auto at = FindOp(program, 0, type);
  if (!at) at = FindInner(program, type);
  if (at) Change(program, *at, change);
  return at.has_value();
}
bool RemoveFirst(Program& program, const std::string& type) {
  auto at = FindOp(program, 0, type);
  if (!at) at = FindInner(program, type);
  if (at) Remove(program, *at);
  return at.has_value();
}

bool IsOptimizer(const Op& op) {
  const OpDef* def = AllOps().Find(op.type());
  return def != nullptr && def->optimizer().has_value();
}
std::optional<OpAt> FindOptimizer(const Program& program) { return FindIf(program, IsOptimizer); }

std::string AddressOf(const check::RoleFiles& roles, std::size_t i) {
  const Program& program = roles.pservers[i].program;
  return OpOf(program, *FindOp(program, 0, "listen_and_serv")).GetOr<std::string>("endpoint", "");
}
std::string OtherAddress(const check::RoleFiles& roles, const std::string& than) {
  const std::string first = AddressOf(roles, 0);
  return first != than || roles.pservers.size() < 2 ? first : AddressOf(roles, 1);
}

}  // namespace penstock::test
