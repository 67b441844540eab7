// Shape inference on every program of the corpus: our inferred types and shapes of outputs equal Fluid's
// declarations.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "framework/base/files.h"
#include "framework/op/conform.h"
#include "framework/op/op_registry.h"
#include "framework/op/tensor_desc.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/program_files.h"

namespace penstock::test {
namespace {

std::optional<TensorDesc> Declared(const Program& program, int block, const std::string& name) {
  const Var* var = program.FindVar(block, name);
  if (var == nullptr) return std::nullopt;
  TensorDesc info = DescOf(*var);
  // Fluid multiplies -1 like a number; results below -1 are unknown too.
  for (int i = 0; i < info.shape.rank(); ++i) info.shape.Set(i, std::max(info.shape[i], kUnknownDim));
  return info;
}

struct Tally {
  int ops = 0;
  int outputs = 0;
  std::set<std::string> complaints;  // op type and error; one of each kind is enough
};

void CheckOutputs(const Program& program, int block, const Op& op, Tally& tally) {
  const OpDef& def = *AllOps().Find(op.type());
  if (const auto conformed = Conformed(def, op)) return CheckOutputs(program, block, *conformed, tally);
  InferContext context(def, op, [&](const std::string& name) { return Declared(program, block, name); });
  Status status = def.CheckOp(op);
  if (status.ok()) status = def.Infer(context);
  ++tally.ops;
  if (!status.ok()) {
    tally.complaints.insert(status.ToString());
    return;
  }
  for (std::size_t s = 0; s < op.outputs().size(); ++s) {
    const Slot& slot = op.outputs()[s];
    for (std::size_t i = 0; i < slot.args.size(); ++i) {
      const std::optional<TensorDesc> declared = Declared(program, block, slot.args[i]);
      const TensorDesc& inferred = context.outputs()[s][i];
      if (!declared || !declared->has_type || !inferred.has_type) continue;
      if (declared->shape.rank() == 0) continue;  // cases of single ops on selected rows declare no shapes
      ++tally.outputs;
      if (declared->dtype == inferred.dtype && declared->shape == inferred.shape) continue;
      tally.complaints.insert(StrCat(op.type(), " ", slot.name, ": ", DTypeName(inferred.dtype),
                                     inferred.shape, " where Fluid declared ", DTypeName(declared->dtype),
                                     declared->shape));
    }
  }
}

// Fluid declares the parameters of local SGD as bool (its rewrite copies them without a type), and a
// transpiler that makes all roles edits the startup program of the trainer in place. The case of one op on
// integers declares its result f32; of extract_rows, which it had not registered, there is a bare op.
bool IsWrongInFluid(const std::string& path) {
  return path.find("@coll_localsgd") != std::string::npos || path.find("@shared_") != std::string::npos ||
         path.find("/ops/elementwise_mod_int.") != std::string::npos ||
         path.find("/ops_sr/extract_rows.") != std::string::npos;
}

void ExpectFluidsShapes(const std::string& folder, int ops_expected) {
  Tally tally;
  for (const std::filesystem::path& path : ProgramFiles(folder)) {
    if (IsWrongInFluid(path.string())) continue;
    const Result<std::string> bytes = ReadFile(path.string());
    ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
    const Result<Program> program = ParseProgram(*bytes);
    ASSERT_TRUE(program.ok()) << path;
    for (int b = 0; b < program->block_count(); ++b) {
      for (const OpEntry& entry : program->block(b).ops()) {
        if (AllOps().Find(entry.op->type()) != nullptr) CheckOutputs(*program, b, *entry.op, tally);
      }
    }
  }
  // Cases in which Fluid's declaration differs from its result: one row per image instead of per window, or
  // per row instead of per sequence. An array is declared with the shape of the last write, although it
  // contains tensors of several shapes.
  static const std::set<std::string> kGuesses = {
      "im2sequence Out: f32[8, 8] where Fluid declared f32[2, 8]",
      "sequence_pool Out: f32[?, 4] where Fluid declared f32[9, 4]",
      "read_from_array Out: f32[1, 3] where Fluid declared f32[2, 3]",
      "write_to_array Out: f32[2, 3] where Fluid declared f32[1, 3]"};
  for (const std::string& complaint : tally.complaints) {
    // It declares two rows, whatever the number of looked-up rows.
    if (StartsWith(complaint, "lookup_sparse_table Out: ")) continue;
    if (!kGuesses.contains(complaint)) ADD_FAILURE() << complaint;
  }
  EXPECT_GE(tally.ops, ops_expected) << folder;
  std::cout << tally.ops << " ops, " << tally.outputs << " outputs\n";
}

TEST(CorpusInference, InfersFluidsShapes) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  ExpectFluidsShapes(CorpusFolder() + "/open", 29000);
}

TEST(CorpusInference, InfersTheShapesOfTheSelection) {
  ExpectFluidsShapes(SelectionFolder() + "/open", 3600);
}

}  // namespace
}  // namespace penstock::test
