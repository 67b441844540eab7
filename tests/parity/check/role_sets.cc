#include "tests/parity/check/role_sets.h"

#include "operators/all_ops.h"
#include "transpiler/pipeline/check_role_set.h"

namespace penstock::test {
namespace {

// trainer.pb and then trainer_t1.pb ...; pserver_0.pb ...
std::vector<check::RoleProgram> FilesOfRole(const CaseFolder& one, const std::string& stem, bool trainers) {
  std::vector<check::RoleProgram> files;
  for (int i = 0; i < 64; ++i) {
    const std::string suffix = trainers ? (i == 0 ? "" : StrCat("_t", i)) : StrCat("_", i);
    const std::string name = StrCat(stem, suffix, ".pb");
    const auto it = one.fluids.find(name);
    if (it != one.fluids.end()) files.push_back({name, it->second});
  }
  return files;
}

}  // namespace

std::optional<check::RoleFiles> FluidSet(const CaseFolder& one) {
  check::RoleFiles files{FilesOfRole(one, "trainer", true), FilesOfRole(one, "trainer_startup", true),
                         FilesOfRole(one, "pserver", false), FilesOfRole(one, "pserver_startup", false)};
  const bool servers = one.job.config.kind == plan::Kind::kPserver || one.job.config.kind == plan::Kind::kGeo;
  if (files.trainers.empty() || (servers && files.pservers.size() != one.job.config.pservers.size()))
    return std::nullopt;
  return files;
}

std::optional<check::RoleFiles> OurSet(const CaseFolder& one, plan::Dialect dialect) {
  plan::TranspileConfig config = one.job.config;
  config.dialect = dialect;
  const Result<RoleSet> roles = Transpile(AllOps(), one.main, one.startup, config);
  return roles.ok() ? std::optional(FilesOf(*roles)) : std::nullopt;
}

}  // namespace penstock::test
