// One case of the corpus: a program, how Fluid 1.8.5 was asked to distribute it, and the role programs that
// it made.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "tools/case/case_file.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {

struct CaseFolder {
  std::string id;  // "fit_a_line.sgd@sync_p2t2"
  CaseFile job;
  Program main, startup;                  // with their facts
  std::map<std::string, Program> fluids;  // role file -> what Fluid made; some are missing where it failed

  std::string config_id() const { return id.substr(id.find('@') + 1); }
};

// Ids of all cases below a corpus folder, sorted.
std::vector<std::string> CaseIds(const std::string& corpus);
CaseFolder ReadCaseFolder(const std::string& corpus, const std::string& id);

// Who a role file is for: "trainer_startup_t1.pb" is trainer 1's startup program.
struct RoleFile {
  std::string name;
  bool pserver = false;
  bool startup = false;
  int index = 0;  // trainer id, or position of the pserver
};
// The role files of a set, as `penstock transpile` names them.
std::vector<std::pair<RoleFile, const Program*>> RoleFilesOf(const RoleSet& roles);

}  // namespace penstock::test
