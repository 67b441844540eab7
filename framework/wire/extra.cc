// ProgramExtra: facts for which Fluid's format has no field, as extension 1000 of ProgramDesc.
#include "extra.pb.h"
#include "framework/base/hash.h"
#include "framework/wire/items.h"
#include "framework/wire/write.h"

namespace penstock {
namespace {

using namespace wire;

bool HasFacts(const Var& var) { return var.facts != VarFacts(); }

void AppendSlice(const InitialSlice& slice, std::string& out) {
  AppendTextField(kSliceWhole, slice.whole, out);
  for (const Dim extent : slice.whole_shape.dims()) AppendNumberField(kSliceShape, extent, out);
  AppendNumberField(kSliceBegin, slice.row_begin, out);
  AppendNumberField(kSliceEnd, slice.row_end, out);
}

// Omits facts that have their default.
void AppendFacts(const Var& var, std::string& out) {
  const VarFacts& facts = var.facts;
  const VarFacts defaults;
  AppendTextField(kFactsName, var.name, out);
  if (facts.is_parameter) AppendNumberField(kFactsParameter, 1, out);
  if (!facts.trainable) AppendNumberField(kFactsTrainable, 0, out);
  if (facts.is_distributed) AppendNumberField(kFactsDistributed, 1, out);
  if (facts.learning_rate != defaults.learning_rate) AppendFloatField(kFactsRate, facts.learning_rate, out);
  if (facts.stop_gradient) AppendNumberField(kFactsStopGradient, 1, out);
  if (facts.is_data) AppendNumberField(kFactsData, 1, out);
  if (facts.slice) AppendMessage(kFactsSlice, out, [&] { AppendSlice(*facts.slice, out); });
}

// Continues the hash of the preceding ops' types by the type of `op`.
std::uint64_t HashType(const Op& op, std::uint64_t before) {
  return Fnv1a64(";", Fnv1a64(op.type(), before));
}

void AppendBlockFacts(const Block& block, std::string& out) {
  for (const VarRef& var : block.vars()) {
    if (HasFacts(*var)) AppendMessage(kBlockFactsVars, out, [&] { AppendFacts(*var, out); });
  }
  const std::size_t before = out.size();
  std::uint64_t types = kFnvOffset;
  for (std::size_t k = 0; k < block.ops().size(); ++k) {
    const Op& op = *block.ops()[k].op;
    types = HashType(op, types);
    if (op.location().empty() && op.made_by().empty()) continue;
    AppendMessage(kBlockFactsOps, out, [&] {
      AppendNumberField(kOpFactsIndex, static_cast<std::int64_t>(k), out);
      if (!op.location().empty()) AppendTextField(kOpFactsLocation, op.location(), out);
      if (!op.made_by().empty()) AppendTextField(kOpFactsMadeBy, op.made_by(), out);
    });
  }
  if (out.size() > before) AppendNumberField(kBlockFactsTypes, static_cast<std::int64_t>(types), out);
}

VarFacts ReadFacts(const proto::VarExtra& in) {
  VarFacts facts;
  facts.is_parameter = in.is_parameter();
  facts.trainable = in.trainable();
  facts.is_distributed = in.is_distributed();
  facts.learning_rate = in.learning_rate();
  facts.stop_gradient = in.stop_gradient();
  facts.is_data = in.is_data();
  if (in.has_slice()) {
    facts.slice = InitialSlice{
        in.slice().whole(),
        Shape(std::vector<Dim>(in.slice().whole_shape().begin(), in.slice().whole_shape().end())),
        in.slice().row_begin(),
        in.slice().row_end(),
    };
  }
  return facts;
}

}  // namespace

// Does not use protobuf's message objects: one per op would cost several times as much as the bytes.
bool AppendExtra(const Program& program, std::string& out) {
  bool needed = false;
  for (int i = 0; i < program.block_count(); ++i) {
    AppendMessage(kExtraBlocks, out, [&] {
      const std::size_t before = out.size();
      AppendBlockFacts(program.block(i), out);
      needed = needed || out.size() > before;
    });
  }
  const std::size_t blocks_end = out.size();
  const ProgramMeta& meta = program.meta();
  if (!meta.plan.empty()) AppendTextField(kExtraPlan, meta.plan, out);
  if (!meta.name.empty()) AppendTextField(kExtraName, meta.name, out);
  if (meta.random_seed != 0) AppendNumberField(kExtraSeed, meta.random_seed, out);
  for (const auto& policy : meta.policies) {
    AppendMessage(kExtraPolicies, out, [&] {
      AppendTextField(kPolicyName, policy.first, out);
      AppendTextField(kPolicyValue, policy.second, out);
    });
  }
  if (!meta.job_facts.empty()) AppendTextField(kExtraJobFacts, meta.job_facts, out);
  for (const auto& chunk : meta.chunk_rows) {
    AppendMessage(kExtraChunks, out, [&] {
      AppendTextField(kChunkName, chunk.first, out);
      AppendNumberField(kChunkRows, chunk.second, out);
    });
  }
  return needed || out.size() > blocks_end;
}

Status ReadExtra(std::string_view bytes, proto::ProgramExtra& extra) {
  if (extra.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) && extra.IsInitialized())
    return OkStatus();
  return DataLoss("E-program-extra", "the program's extra facts cannot be read");
}

VarFactsByName VarFactsOf(const proto::BlockExtra& extra) {
  VarFactsByName facts;
  facts.reserve(static_cast<std::size_t>(extra.vars_size()));
  for (const proto::VarExtra& of : extra.vars()) facts[of.name()] = &of;
  return facts;
}

void ApplyVarFacts(const proto::VarExtra& facts, Var& var) { var.facts = ReadFacts(facts); }

void ApplyOpFacts(const proto::BlockExtra& facts, const std::vector<std::shared_ptr<Op>>& ops) {
  if (facts.has_op_types()) {
    std::uint64_t types = kFnvOffset;
    for (const std::shared_ptr<Op>& op : ops) types = HashType(*op, types);
    if (static_cast<std::int64_t>(types) != facts.op_types()) return;
  }
  for (const proto::OpExtra& of : facts.ops()) {
    if (of.index() < 0 || static_cast<std::size_t>(of.index()) >= ops.size()) continue;
    ops[static_cast<std::size_t>(of.index())]->SetLocation(of.location()).SetMadeBy(of.made_by());
  }
}

void ApplyMeta(const proto::ProgramExtra& extra, ProgramMeta& meta) {
  meta.plan = extra.plan();
  meta.name = extra.name();
  meta.random_seed = extra.random_seed();
  meta.policies = {extra.policies().begin(), extra.policies().end()};
  meta.job_facts = extra.job_facts();
  meta.chunk_rows = {extra.chunk_rows().begin(), extra.chunk_rows().end()};
}

}  // namespace penstock
