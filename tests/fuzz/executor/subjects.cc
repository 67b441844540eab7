#include "tests/fuzz/executor/subjects.h"

#include <algorithm>
#include <filesystem>

#include "framework/base/files.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/support/corpus.h"
#include "tests/support/npz.h"
#include "tests/support/program_files.h"
#include "tests/support/random_network.h"

namespace penstock::fuzz {
namespace {

namespace fs = std::filesystem;

// Larger programs and parameters show nothing new and are slow.
constexpr int kOpsMax = 400;
constexpr std::int64_t kElementsMax = 40000;
constexpr std::size_t kFilesMax = 300;
constexpr std::uint64_t kNetworks = 30;

void Declare(Program& program, const std::string& name, const Tensor& value) {
  Var var = TensorVar(name, value.dtype(), value.shape(), static_cast<std::int32_t>(value.lod().size()));
  program.MutableBlock(0).SetVar(std::move(var));
}

// A program of one op.
Subject OneOp(const Op& op, const test::Tensors& inputs) {
  Subject subject;
  subject.name = op.type();
  test::TensorDescs known;
  for (const Slot& slot : op.inputs()) {
    for (const std::string& name : slot.args) {
      const auto found = inputs.find(name);
      if (found == inputs.end()) continue;
      Declare(subject.main, name, found->second);
      subject.values[name] = found->second;
      known[name] = DescOf(found->second);
    }
  }
  const Result<test::TensorDescs> outputs = test::InferOp(AllOps(), op, known);
  for (const std::string& name : op.OutputNames()) {
    if (name == kEmptyVarName || subject.main.main().FindVar(name) != nullptr) continue;
    Var var = TensorVar(name, DType::kFp32, {});
    if (outputs.ok() && outputs->contains(name)) {
      const TensorDesc& info = outputs->find(name)->second;
      var = TensorVar(name, info.dtype, info.shape, info.lod_level);
      var.kind = info.kind;
      if (!info.has_type) var.type.reset();
    }
    subject.main.MutableBlock(0).SetVar(std::move(var));
  }
  subject.main.MutableBlock(0).Append(op);
  return subject;
}

void AddOps(std::vector<Subject>& subjects) {
  test::ForEachOp([&](const Op& op, const test::Tensors& inputs) { subjects.push_back(OneOp(op, inputs)); });
}

void AddNetworks(std::vector<Subject>& subjects) {
  for (std::uint64_t seed = 0; seed < kNetworks; ++seed) {
    test::RandomNetwork network =
        test::MakeRandomNetwork(AllOps(), seed, {.runnable = true, .tables = seed % 2 == 0});
    subjects.push_back({StrCat("network ", seed), std::move(network.startup), std::move(network.main), {}});
  }
}

bool IsSmall(const Program& program) {
  int ops = 0;
  std::int64_t elements = 0;
  for (int b = 0; b < program.block_count(); ++b) {
    ops += static_cast<int>(program.block(b).ops().size());
    for (const VarRef& var : program.block(b).vars()) {
      if (var->persistable && var->type && var->type->shape.IsKnown()) elements += var->type->shape.Count();
    }
  }
  return ops > 0 && ops <= kOpsMax && elements <= kElementsMax;
}

// "in:X_0", "f0:x", "param:w": the arrays of a case by the names of its variables.
std::map<std::string, Tensor, std::less<>> ValuesBeside(const fs::path& path) {
  std::map<std::string, Tensor, std::less<>> values;
  std::string base = path.string();
  for (const char* ending : {".gz", ".pb", ".grad"}) {
    if (EndsWith(base, ending)) base.resize(base.size() - std::string_view(ending).size());
  }
  const Result<std::string> bytes = ReadFile(base + ".npz");
  if (!bytes.ok()) return values;
  const Result<test::Arrays> arrays = test::ReadNpz(*bytes);
  if (!arrays.ok()) return values;
  for (const auto& [name, array] : *arrays) {
    const std::size_t colon = name.find(':');
    if (colon != std::string::npos && name.find("lens") == std::string::npos)
      values.emplace(name.substr(colon + 1), array);
  }
  return values;
}

void AddFiles(std::vector<Subject>& subjects) {
  std::vector<fs::path> files = test::ProgramFiles(fs::path(test::CorpusOrSelection()) / "open");
  // Cases of a folder resemble each other, so takes a fixed share of each folder.
  const std::size_t step = std::max<std::size_t>(files.size() / kFilesMax, 1);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string path = files[i].string();
    const bool one_op = path.find("/ops") != std::string::npos || path.find("/control") != std::string::npos;
    if ((!one_op && i % step != 0) || path.find("startup") != std::string::npos) continue;
    const Result<std::string> bytes = ReadFile(path);
    if (!bytes.ok() || bytes->size() > 200000) continue;
    Result<Program> program = ParseProgram(*bytes);
    if (program.ok() && IsSmall(*program))
      subjects.push_back({path, Program(), *std::move(program), ValuesBeside(path)});
  }
}

}  // namespace

std::vector<Subject> AllSubjects() {
  std::vector<Subject> subjects = TextSubjects();
  AddNetworks(subjects);
  AddOps(subjects);
  AddFiles(subjects);
  return subjects;
}

}  // namespace penstock::fuzz
