#include "tests/support/program_files.h"

#include <algorithm>
#include <system_error>

#include "framework/base/strings.h"
#include "framework/text/printer.h"

namespace penstock::test {
namespace fs = std::filesystem;
namespace {

std::string BlockDifference(const Block& a, const Block& b) {
  const std::string where = StrCat("block ", a.index(), ": ");
  if (a.parent() != b.parent() || a.has_forward_block() != b.has_forward_block() ||
      a.forward_block() != b.forward_block()) {
    return where + "its head differs";
  }
  if (a.ops().size() != b.ops().size()) return StrCat(where, a.ops().size(), " ops, and ", b.ops().size());
  for (std::size_t i = 0; i < a.ops().size(); ++i) {
    const Op& x = *a.ops()[i].op;
    const Op& y = *b.ops()[i].op;
    if (x.SameAs(y) && x.location() == y.location() && x.made_by() == y.made_by()) continue;
    const PrintOptions all = PrintOptions::Everything();
    return StrCat(where, "op ", i, "\n  ", PrintOp(x, all), "\n  ", PrintOp(y, all));
  }
  if (a.vars().size() != b.vars().size())
    return StrCat(where, a.vars().size(), " variables, and ", b.vars().size());
  for (const VarRef& var : a.vars()) {
    const Var* other = b.FindVar(var->name);
    if (other == nullptr) return StrCat(where, "no ", var->name);
    if (!var->SameAs(*other) || var->facts != other->facts) {
      return StrCat(where, "\n  ", PrintVar(*var), "\n  ", PrintVar(*other));
    }
  }
  return "";
}

}  // namespace

std::vector<fs::path> ProgramFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".pb") || name.ends_with(".pb.gz") || name.ends_with(".pdmodel") ||
        name == "__model__" || name == "model") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string Difference(const Program& a, const Program& b) {
  const ProgramMeta& x = a.meta();
  const ProgramMeta& y = b.meta();
  if (x.name != y.name || x.version != y.version || x.op_compatible_map != y.op_compatible_map ||
      x.random_seed != y.random_seed || x.plan != y.plan || x.policies != y.policies ||
      x.unknown_fields != y.unknown_fields) {
    return "the program's attributes differ";
  }
  if (a.block_count() != b.block_count()) return StrCat(a.block_count(), " blocks, and ", b.block_count());
  for (int i = 0; i < a.block_count(); ++i) {
    std::string difference = BlockDifference(a.block(i), b.block(i));
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace penstock::test
