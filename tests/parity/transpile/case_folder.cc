#include "tests/parity/transpile/case_folder.h"

#include <algorithm>
#include <filesystem>

#include "tests/parity/transpile/python_hash.h"
#include "tests/support/corpus.h"
#include "tests/support/run_program.h"
#include "transpiler/pipeline/check_role_set.h"

namespace penstock::test {
namespace fs = std::filesystem;
std::vector<std::string> CaseIds(const std::string& corpus) {
  std::vector<std::string> ids;
  for (const fs::directory_entry& entry : fs::directory_iterator(corpus + "/open/cases")) {
    ids.push_back(entry.path().filename().string());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

CaseFolder ReadCaseFolder(const std::string& corpus, const std::string& id) {
  CaseFolder out;
  out.id = id;
  const std::string folder = StrCat(corpus, "/open/cases/", id);
  Result<CaseFile> job =
      ParseCase(BytesOf(folder + "/case.json"), {{"HashNameFixed", PythonHashDispatchers()}});
  PENSTOCK_CHECK(job.ok(), StrCat(id, ": ", job.status().ToString()));
  out.job = *std::move(job);
  const std::string program = StrCat(corpus, "/open/programs/", out.job.program);
  out.main = ProgramOf(program + "/main.pb");
  out.startup = ProgramOf(program + "/startup.pb");
  const Status facts = ApplyFacts(BytesOf(program + "/program.json"), out.main, out.startup);
  PENSTOCK_CHECK(facts.ok(), facts.ToString());
  for (const auto& [role, file] : out.job.files) {
    const std::string path = StrCat(folder, "/", file);
    // The selection in the tree has only some files of a case.
    if (fs::exists(path)) out.fluids[role] = ProgramOf(path);
  }
  return out;
}

std::vector<std::pair<RoleFile, const Program*>> RoleFilesOf(const RoleSet& roles) {
  const check::RoleFiles names = FilesOf(roles);
  std::vector<std::pair<RoleFile, const Program*>> files;
  for (std::size_t i = 0; i < roles.trainers.size(); ++i) {
    const TrainerPrograms& role = roles.trainers[i];
    files.push_back({{.name = names.trainers[i].file, .index = role.trainer_id}, &role.main});
    files.push_back(
        {{.name = names.trainer_startups[i].file, .startup = true, .index = role.trainer_id}, &role.startup});
  }
  for (std::size_t i = 0; i < roles.pservers.size(); ++i) {
    const PserverPrograms& role = roles.pservers[i];
    const int index = static_cast<int>(i);
    files.push_back({{.name = names.pservers[i].file, .pserver = true, .index = index}, &role.main});
    files.push_back(
        {{.name = names.pserver_startups[i].file, .pserver = true, .startup = true, .index = index},
         &role.startup});
  }
  return files;
}

}  // namespace penstock::test
