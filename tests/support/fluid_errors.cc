#include "tests/support/fluid_errors.h"

#include <algorithm>
#include <set>

#include "framework/base/check.h"
#include "framework/base/strings.h"

namespace penstock::test {
namespace {

bool IsRows(const Program& program, int block, const std::string& name) {
  const Var* var = program.FindVar(block, name);
  return var != nullptr && var->kind == VarKind::kSelectedRows;
}

// Fluid uses a binary search, although the rows need not be ascending.
bool Finds(const std::vector<std::int64_t>& rows, std::int64_t row) {
  std::size_t begin = 0, end = rows.size();
  while (begin < end) {
    // The lower one of two middle rows.
    const std::size_t middle = (begin + end - 1) / 2;
    if (rows[middle] == row) return true;
    rows[middle] < row ? begin = middle + 1 : end = middle;
  }
  return false;
}

// The lost rows: none if a row is listed twice, because rows are then merged in ascending order.
std::vector<std::int64_t> Lost(const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> lost;
  if (std::set<std::int64_t>(rows.begin(), rows.end()).size() < rows.size()) return lost;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(lost),
               [&](std::int64_t row) { return !Finds(rows, row); });
  return lost;
}

std::vector<std::string> IdsOfLookups(const Program& program, const std::string& table) {
  std::vector<std::string> ids;
  for (const OpEntry& entry : program.main().ops()) {
    const bool looks_up = entry.op->type() == "lookup_table" || entry.op->type() == "lookup_table_v2";
    if (looks_up && entry.op->InputName("W") == table) ids.push_back(entry.op->InputName("Ids"));
  }
  return ids;
}

}  // namespace

std::map<std::string, float> BetasInPlace(const Op& op) {
  std::map<std::string, float> betas;
  if (op.type() != "adam") return betas;
  if (op.InputName("Beta1Pow") == op.OutputName("Beta1PowOut"))
    betas[op.InputName("Beta1Pow")] = op.GetOr("beta1", 0.9f);
  if (op.InputName("Beta2Pow") == op.OutputName("Beta2PowOut"))
    betas[op.InputName("Beta2Pow")] = op.GetOr("beta2", 0.999f);
  return betas;
}

std::map<std::string, float> BetasOfRows(const Program& program) {
  std::map<std::string, float> betas;
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      const Op& op = *entry.op;
      if (op.type() != "adam" || !IsRows(program, block, op.InputName("Grad"))) continue;
      betas.merge(BetasInPlace(op));
    }
  }
  return betas;
}

Program WithDenseGradients(Program program) {
  Block& block = program.MutableBlock(0);
  const std::vector<OpEntry> ops = block.ops();
  for (const OpEntry& entry : ops) {
    if (entry.op->Get<bool>("is_sparse") == nullptr) continue;
    Op op = *entry.op;
    block.Replace(entry.id, std::move(op.Set("is_sparse", false)));
  }
  const std::vector<VarRef> vars = block.vars();
  for (const VarRef& var : vars) {
    if (var->kind == VarKind::kSelectedRows)
      block.SetVar(TensorVar(var->name, var->type->dtype, var->shape()));
  }
  return program;
}

LostRows::LostRows(const Program& program) : program_(program) {
  const Program dense = WithDenseGradients(program);
  const std::vector<OpEntry>& ops = program.main().ops();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool loses = ops[i].op->type() == "momentum" || ops[i].op->type() == "rmsprop";
    const std::string grad = ops[i].op->InputName("Grad");
    if (!loses || !IsRows(program, 0, grad)) continue;
    if (tables_.empty()) program_ = dense;
    const std::string& param = ops[i].op->InputName("Param");
    const Shape& shape = program.FindVar(0, param)->shape();
    const Table& table =
        tables_.emplace_back(Table{StrCat(param, ".mask"), shape[0], IdsOfLookups(program, param)});
    const std::string kept = StrCat(grad, ".kept");
    Block& block = program_.MutableBlock(0);
    block.SetVar(TensorVar(table.mask, DType::kFp32, {shape[0]}));
    block.SetVar(TensorVar(kept, DType::kFp32, shape));
    Op update = *ops[i].op;
    block.Replace(ops[i].id, std::move(update.AddInput("Grad", {kept})));
    block.Insert(block.PositionOf(ops[i].id), Op("elementwise_mul")
                                                  .AddInput("X", {grad})
                                                  .AddInput("Y", {table.mask})
                                                  .AddOutput("Out", {kept})
                                                  .Set("axis", 0)
                                                  .SetRole(OpRole::kBackward));
  }
}

std::vector<exec::Feed> LostRows::Masks(const std::vector<exec::Feed>& feeds, int& lost) const {
  std::vector<exec::Feed> masks;
  for (const Table& table : tables_) {
    std::vector<std::int64_t> rows;
    for (const std::string& name : table.ids) {
      const auto feed = std::ranges::find(feeds, name, &exec::Feed::name);
      PENSTOCK_CHECK(feed != feeds.end(), StrCat(name, " is looked up and not fed"));
      const auto ids = feed->tensor.Span<std::int64_t>();
      rows.insert(rows.end(), ids.begin(), ids.end());
    }
    Tensor mask(DType::kFp32, {table.height});
    std::ranges::fill(mask.Span<float>(), 1.0f);
    for (const std::int64_t row : Lost(rows)) {
      mask.Span<float>()[static_cast<std::size_t>(row)] = 0;
      ++lost;
    }
    masks.push_back({table.mask, std::move(mask)});
  }
  return masks;
}

}  // namespace penstock::test
