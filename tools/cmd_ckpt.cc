// penstock ckpt ls|verify DIR, ckpt diff A B, ckpt export|import: the checkpoints of a job
// (executor/checkpoint).
#include <algorithm>
#include <iostream>
#include <map>
#include <utility>

#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/reader.h"
#include "framework/tensor/serialize.h"
#include "tools/cmd_ckpt_files.h"
#include "tools/command.h"

namespace penstock::tools {
namespace {

using checkpoint::Found;
using checkpoint::Manifest;
using checkpoint::ValueEntry;

constexpr char kCkptUsage[] =
    "ls DIR | ls DIR/step-N | verify DIR | diff DIR/step-A DIR/step-B | export DIR/step-N OUT | "
    "import FOLDER DIR";

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The checkpoint in a folder such as DIR/step-5; nullopt: the path names none.
Result<std::optional<Found>> FindStep(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<Found> all,
                            checkpoint::FindCheckpoints(SystemDisk(), FolderOf(path)));
  const auto found = std::ranges::find_if(
      all, [&](const Found& one) { return one.folder == path || one.folder == "./" + path; });
  return found == all.end() ? std::optional<Found>() : std::optional(std::move(*found));
}

std::string CountOf(std::uint64_t count, std::string_view what) {
  return StrCat(count, " ", what, count == 1 ? "" : "s");
}

std::string Summary(const Found& found) {
  if (!found.whole()) return StrCat("step ", found.step, "  not whole: ", found.lacks, "\n");
  std::uint64_t values = 0, bytes = 0;
  for (const Manifest& part : found.parts) {
    values += part.values.size();
    bytes += part.all_bytes();
  }
  return StrCat("step ", found.step, "  whole: ", CountOf(found.parts.size(), "pserver"), ", ",
                CountOf(static_cast<std::uint64_t>(found.parts.front().trainers), "trainer"), ", ",
                CountOf(values, "value"), ", ", bytes, " bytes\n");
}

// The base of the rows, then what has changed: "part-0-of-1.rows-5 (900 bytes) + ...".
std::string FilesOf(const ValueEntry& value) {
  std::string text;
  for (auto record = value.records.begin(); record != value.records.end();) {
    std::uint64_t bytes = 0;
    const std::string& file = record->file;
    for (; record != value.records.end() && record->file == file; ++record) bytes += record->bytes;
    text += StrCat(text.empty() ? "" : " + ", file, " (", bytes, " bytes)");
  }
  return text;
}

std::string Details(const Found& found) {
  std::string text = Summary(found);
  for (const Manifest& part : found.parts) {
    text += StrCat("pserver ", part.server, "\n");
    for (const ValueEntry& value : part.values) {
      text += StrCat("  ", value.name, " : ", value.rows ? "rows " : "", value.type, "  ",
                     checkpoint::KindName(value.kind));
      if (!value.of.empty() && value.of != value.name) text += StrCat(" of ", value.of);
      if (value.row_begin && *value.row_begin > 0) text += StrCat(" from row ", *value.row_begin);
      if (!value.records.empty()) text += StrCat("  in ", FilesOf(value));
      text += "\n";
    }
  }
  return text;
}

int List(const std::string& path) {
  const Result<std::optional<Found>> step = FindStep(path);
  if (!step.ok()) return BadInput(step.status());
  if (step->has_value()) {
    std::cout << Details(**step);
    return (*step)->whole() ? kExitOk : kExitFindings;
  }
  const Result<std::vector<Found>> all = checkpoint::FindCheckpoints(SystemDisk(), path);
  if (!all.ok()) return BadInput(all.status());
  for (const Found& found : *all) std::cout << Summary(found);
  if (all->empty()) return BadInput(DataLoss("E-checkpoint-whole", path, " has no checkpoint"));
  return kExitOk;
}

int Verify(const std::string& folder) {
  const Result<std::vector<Found>> all = checkpoint::FindCheckpoints(SystemDisk(), folder);
  if (!all.ok()) return BadInput(all.status());
  if (all->empty()) return BadInput(DataLoss("E-checkpoint-whole", folder, " has no checkpoint"));
  bool good = true;
  for (const Found& found : *all) {
    const Status status = found.whole() ? VerifyCheckpoint(SystemDisk(), found) : OkStatus();
    good = good && found.whole() && status.ok();
    if (!found.whole()) {
      std::cout << Summary(found);
    } else {
      std::cout << "step " << found.step << "  " << (status.ok() ? "good" : status.message()) << "\n";
    }
  }
  return good ? kExitOk : kExitFindings;
}

std::string RecordOf(Variable& value) {
  std::string bytes;
  if (const auto* rows = std::as_const(value).If<SelectedRows>()) {
    AppendSelectedRows(bytes, *rows);
  } else {
    AppendTensor(bytes, value.As<Tensor>());
  }
  return bytes;
}

// The values by pserver and name.
std::map<std::pair<int, std::string>, const ValueEntry*> ValuesOf(const Found& found) {
  std::map<std::pair<int, std::string>, const ValueEntry*> values;
  for (const Manifest& part : found.parts) {
    for (const ValueEntry& value : part.values) values[{part.server, value.name}] = &value;
  }
  return values;
}

// Rows that are saved incrementally are read: equal ones may be in different files.
Result<bool> SameValues(const Found& a, const ValueEntry& left, const Found& b, const ValueEntry& right,
                        int server) {
  if (left.records.empty() && right.records.empty())
    return left.crc32c == right.crc32c && left.bytes == right.bytes;
  const auto part = static_cast<std::size_t>(server);
  PENSTOCK_ASSIGN_OR_RETURN(Variable one, ReadValue(SystemDisk(), a.folder, a.parts[part], left));
  PENSTOCK_ASSIGN_OR_RETURN(Variable two, ReadValue(SystemDisk(), b.folder, b.parts[part], right));
  return RecordOf(one) == RecordOf(two);
}

Result<int> CompareParts(const Found& a, const Found& b) {
  const auto left = ValuesOf(a), right = ValuesOf(b);
  int differences = 0;
  const auto tell = [&](const std::pair<int, std::string>& key, const std::string& how) {
    std::cout << "pserver " << key.first << "  " << key.second << ": " << how << "\n";
    ++differences;
  };
  for (const auto& [key, value] : left) {
    const auto other = right.find(key);
    if (other == right.end()) {
      tell(key, StrCat("only in step ", a.step));
    } else if (value->type != other->second->type) {
      tell(key, StrCat(value->type, ", in step ", b.step, " ", other->second->type));
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(const bool same, SameValues(a, *value, b, *other->second, key.first));
      if (!same) tell(key, "other values");
    }
  }
  for (const auto& [key, value] : right) {
    if (!left.contains(key)) tell(key, StrCat("only in step ", b.step));
  }
  if (differences == 0) std::cout << "equal: " << CountOf(left.size(), "value") << "\n";
  return differences == 0 ? kExitOk : kExitFindings;
}

// Of different numbers of pservers: the variables over all of them.
Result<int> CompareWholes(const Found& a, const Found& b) {
  using checkpoint::Reader;
  PENSTOCK_ASSIGN_OR_RETURN(const Reader left, Reader::Make(SystemDisk(), a));
  PENSTOCK_ASSIGN_OR_RETURN(const Reader right, Reader::Make(SystemDisk(), b));
  int differences = 0;
  const auto tell = [&](const std::string& name, const std::string& how) {
    std::cout << name << ": " << how << "\n";
    ++differences;
  };
  for (const auto& [name, whole] : left.wholes()) {
    const checkpoint::Whole* other = right.Find(name);
    if (other == nullptr) {
      tell(name, StrCat("only in step ", a.step));
    } else if (whole.rows != other->rows || whole.type != other->type || whole.shape != other->shape) {
      tell(name, StrCat(DTypeName(whole.type), whole.shape, ", in step ", b.step, " ", DTypeName(other->type),
                        other->shape));
    } else {
      Result<Variable> one = left.ReadWhole(name), two = right.ReadWhole(name);
      if (!one.ok()) return one.status();
      if (!two.ok()) return two.status();
      if (RecordOf(*one) != RecordOf(*two)) tell(name, "other values");
    }
  }
  for (const auto& [name, whole] : right.wholes()) {
    if (left.Find(name) == nullptr) tell(name, StrCat("only in step ", b.step));
  }
  if (differences == 0) std::cout << "equal: " << CountOf(left.wholes().size(), "variable") << "\n";
  return differences == 0 ? kExitOk : kExitFindings;
}

// A whole checkpoint in a folder such as DIR/step-5.
Result<Found> FindWhole(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<Found> found, FindStep(path));
  if (!found) return DataLoss("E-checkpoint-whole", path, " is no checkpoint");
  if (!found->whole()) return DataLoss("E-checkpoint-whole", path, " is not whole: ", found->lacks);
  return *std::move(found);
}

int Diff(const std::string& a, const std::string& b) {
  const Result<Found> left = FindWhole(a), right = FindWhole(b);
  if (!left.ok()) return BadInput(left.status());
  if (!right.ok()) return BadInput(right.status());
  const bool same_parts = left->parts.size() == right->parts.size();
  const Result<int> code = same_parts ? CompareParts(*left, *right) : CompareWholes(*left, *right);
  return code.ok() ? *code : BadInput(code.status());
}

int Export(const std::string& path, const std::string& out) {
  const Result<Found> found = FindWhole(path);
  return found.ok() ? ExportCheckpoint(*found, out) : BadInput(found.status());
}

}  // namespace

int RunCkpt(const Arguments& arguments) {
  const std::string_view does = arguments.empty() ? std::string_view() : arguments[0];
  if (does == "ls" && arguments.size() == 2) return List(WithoutSlash(arguments[1]));
  if (does == "verify" && arguments.size() == 2) return Verify(WithoutSlash(arguments[1]));
  if (does == "diff" && arguments.size() == 3)
    return Diff(WithoutSlash(arguments[1]), WithoutSlash(arguments[2]));
  if (does == "export" && arguments.size() == 3)
    return Export(WithoutSlash(arguments[1]), WithoutSlash(arguments[2]));
  if (does == "import" && arguments.size() == 3)
    return ImportCheckpoint(WithoutSlash(arguments[1]), WithoutSlash(arguments[2]));
  return BadUsage("ckpt", kCkptUsage);
}

}  // namespace penstock::tools
