// Reads one case of the corpus: a program, its configuration, and the role programs that Fluid 1.8.5 made.
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
  std::map<std::string, Program> fluids;  // role file -> Fluid's program; incomplete if Fluid failed

  std::string config_id() const { return id.substr(id.find('@') + 1); }
};

// Ids of all cases below a corpus folder, sorted.
std::vector<std::string> CaseIds(const std::string& corpus);
CaseFolder ReadCaseFolder(const std::string& corpus, const std::string& id);

// The role of a role file: "trainer_startup_t1.pb" is trainer 1's startup program.
struct RoleFile {
  std::string name;
  bool pserver = false;
  bool startup = false;
  int index = 0;  // trainer id, or position of the pserver
};
// The role programs of a set, with the file names of `penstock transpile`.
std::vector<std::pair<RoleFile, const Program*>> RoleFilesOf(const RoleSet& roles);

}  // namespace penstock::test
