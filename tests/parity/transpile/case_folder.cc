#include "tests/parity/transpile/case_folder.h"

#include <algorithm>
#include <filesystem>

#include "framework/base/files.h"
#include "framework/text/program_file.h"
#include "tests/parity/transpile/python_hash.h"

namespace penstock::test {
namespace fs = std::filesystem;
namespace {

std::string Text(const std::string& path) {
  Result<std::string> bytes = ReadFile(path);
  PENSTOCK_CHECK(bytes.ok(), bytes.status().ToString());
  return *std::move(bytes);
}

Program ReadProgram(const std::string& path) {
  Result<Program> program = ReadProgramFile(fs::exists(path) ? path : path + ".gz");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

}  // namespace

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
  Result<CaseFile> job = ParseCase(Text(folder + "/case.json"), {{"HashNameFixed", PythonHashDispatchers()}});
  PENSTOCK_CHECK(job.ok(), StrCat(id, ": ", job.status().ToString()));
  out.job = *std::move(job);
  const std::string program = StrCat(corpus, "/open/programs/", out.job.program);
  out.main = ReadProgram(program + "/main.pb");
  out.startup = ReadProgram(program + "/startup.pb");
  const Status facts = ApplyFacts(Text(program + "/program.json"), out.main, out.startup);
  PENSTOCK_CHECK(facts.ok(), facts.ToString());
  for (const auto& [role, file] : out.job.files) {
    const std::string path = StrCat(folder, "/", file);
    // The selection in the tree keeps fewer files than the case has.
    if (fs::exists(path)) out.fluids[role] = ReadProgram(path);
  }
  return out;
}

std::vector<std::pair<RoleFile, const Program*>> RoleFilesOf(const RoleSet& roles) {
  std::vector<std::pair<RoleFile, const Program*>> files;
  for (std::size_t i = 0; i < roles.trainers.size(); ++i) {
    const TrainerRole& role = roles.trainers[i];
    const std::string suffix = i == 0 ? "" : StrCat("_t", role.trainer_id);
    files.push_back({{.name = StrCat("trainer", suffix, ".pb"), .index = role.trainer_id}, &role.main});
    files.push_back(
        {{.name = StrCat("trainer_startup", suffix, ".pb"), .startup = true, .index = role.trainer_id},
         &role.startup});
  }
  for (std::size_t i = 0; i < roles.pservers.size(); ++i) {
    const int index = static_cast<int>(i);
    files.push_back(
        {{.name = StrCat("pserver_", i, ".pb"), .pserver = true, .index = index}, &roles.pservers[i].main});
    files.push_back(
        {{.name = StrCat("pserver_startup_", i, ".pb"), .pserver = true, .startup = true, .index = index},
         &roles.pservers[i].startup});
  }
  return files;
}

}  // namespace penstock::test
