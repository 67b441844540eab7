// check reports every single edit of a correct set, except edits on the list of harmless ones: an edit of one
// program, and the same edit of all programs of a role. In the sets of the tree, one op of each type and one
// variable of each use are edited in every way;
//
//   PENSTOCK_MUTATE=CASE,CASE parity_check --gtest_filter='*Mutation*'
//
// edits all of them in these cases of the corpus instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <set>

#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "tests/parity/check/harmless.h"
#include "tests/parity/check/mutations.h"
#include "tests/parity/check/role_sets.h"
#include "tests/support/corpus.h"

namespace penstock {
namespace {

using test::CaseFolder;
using test::Mutation;

constexpr char kNamedCases[] = "PENSTOCK_MUTATE";

struct RoleFilesOf {
  const char* name;
  std::vector<check::RoleProgram> check::RoleFiles::*files;
};
constexpr RoleFilesOf kRoles[] = {{"trainer", &check::RoleFiles::trainers},
                                  {"trainer's start", &check::RoleFiles::trainer_startups},
                                  {"pserver", &check::RoleFiles::pservers},
                                  {"pserver's start", &check::RoleFiles::pserver_startups}};
constexpr RoleFilesOf kRanks[] = {{"rank", &check::RoleFiles::trainers},
                                  {"rank's start", &check::RoleFiles::trainer_startups}};

// The first line that an edit has changed, before and after.
std::string ChangeOf(const Program& before, const Program& after) {
  const std::string texts[] = {PrintProgram(before), PrintProgram(after)};
  const auto was = Split(texts[0], '\n'), is = Split(texts[1], '\n');
  const auto [a, b] = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
  return StrCat("\n  was ", a == was.end() ? "" : *a, "\n  is  ", b == is.end() ? "" : *b);
}

using EditKey = std::pair<std::string, int>;  // Mutation::what and Mutation::number
std::map<EditKey, Mutation> EditsOf(const Program& program, int per_kind) {
  std::map<EditKey, Mutation> edits;
  for (const auto& some :
       {test::OpMutations(program, per_kind), test::DeclarationMutations(program, per_kind)}) {
    for (const Mutation& edit : some) edits.emplace(EditKey(edit.what, edit.number), edit);
  }
  return edits;
}

// Tries the edits of one set.
class Editor {
 public:
  Editor(const CaseFolder& one, const std::string& whose, check::RoleFiles roles, int per_kind)
      : set_(StrCat(one.id, ", ", whose)),
        source_{one.main, one.startup},
        roles_(std::move(roles)),
        per_kind_(per_kind) {}

  bool IsCorrect() const { return check::CheckRoles(roles_, AllOps(), {.source = &source_}).errors() == 0; }

  void EditAll() {
    const auto edit = [&](const auto& roles) {
      for (const RoleFilesOf& role : roles) {
        std::vector<check::RoleProgram>& files = roles_.*role.files;
        if (!files.empty()) EditRole(role.name, files);
      }
    };
    roles_.pservers.empty() ? edit(kRanks) : edit(kRoles);
  }

  int tried() const { return tried_; }
  // "pserver: scale.scale: another", with the edits of this kind that check did not report.
  const std::map<std::string, std::vector<std::string>>& not_found() const { return not_found_; }

 private:
  void EditRole(const std::string& role, std::vector<check::RoleProgram>& files) {
    const std::vector<check::RoleProgram> whole = files;
    std::vector<std::map<EditKey, Mutation>> edits;
    for (const check::RoleProgram& file : files) edits.push_back(EditsOf(file.program, per_kind_));
    for (const auto& last : edits.back()) {
      const EditKey& key = last.first;
      last.second.make(files.back().program);
      Judge(StrCat(role, ": ", key.first), whole.back(), files.back());
      files.back().program = whole.back().program;
      const bool in_all =
          std::all_of(edits.begin(), edits.end(), [&](const auto& of) { return of.contains(key); });
      if (!in_all || files.size() == 1) continue;
      for (std::size_t i = 0; i < files.size(); ++i) edits[i].at(key).make(files[i].program);
      Judge(StrCat("every ", role, ": ", key.first), whole.back(), files.back());
      files = whole;
    }
  }

  void Judge(const std::string& what, const check::RoleProgram& before, const check::RoleProgram& after) {
    ++tried_;
    // A finding without the source is also found with it.
    if (check::CheckRoles(roles_, AllOps()).errors() > 0) return;
    const bool told_by_source = check::CheckRoles(roles_, AllOps(), {.source = &source_}).errors() > 0;
    if (test::CannotMatter(set_, what, told_by_source)) return;
    not_found_[told_by_source ? what + " (without the source)" : what].push_back(
        ChangeOf(before.program, after.program));
  }

  std::string set_;
  check::SourcePrograms source_;
  check::RoleFiles roles_;
  int per_kind_;
  int tried_ = 0;
  std::map<std::string, std::vector<std::string>> not_found_;
};

// One case of every mode: whole and sliced, with state, with a schedule, with a table; by ops and by a
// communicator.
std::vector<std::string> MutatedCases() {
  if (const char* named = std::getenv(kNamedCases)) return Split(named, ',');
  return {"fit_a_line.sgd@sync_mbs10_p2t2",  "wide_linear.momentum@sync_p2t2",
          "word2vec_dist.sgd@tbl_sync_p2t2", "softmax_reg.adam.lr_exponential@async_rt_p2t2",
          "fit_a_line.sgd@async_p2t2",       "wide_linear.sgd@dc_async_p2t2",
          "wide_linear.sgd@cna_rt_p2t2",     "fit_a_line.sgd@geo_p2t2",
          "fit_a_line.sgd@nccl2_t2",         "fit_a_line.sgd@coll_allreduce_t2",
          "fit_a_line.sgd@coll_localsgd_t2"};
}

class MutationTest : public testing::TestWithParam<std::string> {};

TEST_P(MutationTest, EveryEditIsDetectedOrHarmless) {
  const bool named = std::getenv(kNamedCases) != nullptr;
  const CaseFolder one =
      test::ReadCaseFolder(named ? test::CorpusOrSelection() : test::SelectionFolder(), GetParam());
  int tried = 0;
  const std::pair<const char*, std::optional<check::RoleFiles>> sets[] = {
      {"Fluid's", test::FluidSet(one)}, {"ours", test::OurSet(one, plan::Dialect::kDefault)}};
  for (const auto& [whose, set] : sets) {
    if (!set) continue;
    Editor editor(one, whose, *set, named ? std::numeric_limits<int>::max() : 1);
    if (!editor.IsCorrect()) continue;  // a defect of Fluid's
    editor.EditAll();
    tried += editor.tried();
    for (const auto& [what, changes] : editor.not_found()) {
      ADD_FAILURE() << GetParam() << ", " << whose << ": not found, " << changes.size() << " times: " << what
                    << Join(changes, "");
    }
  }
  EXPECT_GT(tried, 500);
  std::cout << GetParam() << ": " << tried << " edits\n";
}

INSTANTIATE_TEST_SUITE_P(Sets, MutationTest, testing::ValuesIn(MutatedCases()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace penstock
