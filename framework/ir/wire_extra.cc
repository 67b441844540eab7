// ProgramExtra: facts that Fluid's format has no field for, as extension 1000 of ProgramDesc.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "extra.pb.h"
#include "framework/ir/wire_items.h"

namespace penstock {
namespace {

bool HasFacts(const Var& var) { return var.facts != VarFacts(); }

void WriteFacts(const Var& var, proto::VarExtra* out) {
  const VarFacts& facts = var.facts;
  const VarFacts defaults;
  out->set_name(var.name);
  if (facts.is_parameter) out->set_is_parameter(true);
  if (facts.trainable != defaults.trainable) out->set_trainable(facts.trainable);
  if (facts.is_distributed) out->set_is_distributed(true);
  if (facts.learning_rate != defaults.learning_rate) out->set_learning_rate(facts.learning_rate);
  if (facts.stop_gradient) out->set_stop_gradient(true);
  if (facts.is_data) out->set_is_data(true);
  if (facts.slice) {
    proto::SliceExtra* slice = out->mutable_slice();
    slice->set_whole(facts.slice->whole);
    for (const Dim extent : facts.slice->whole_shape.dims()) slice->add_whole_shape(extent);
    slice->set_row_begin(facts.slice->row_begin);
    slice->set_row_end(facts.slice->row_end);
  }
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

std::string MakeExtra(const Program& program) {
  proto::ProgramExtra extra;
  bool needed = false;
  for (int i = 0; i < program.block_count(); ++i) {
    proto::BlockExtra* out = extra.add_blocks();
    const Block& block = program.block(i);
    for (const VarRef& var : block.vars()) {
      if (HasFacts(*var)) WriteFacts(*var, out->add_vars());
    }
    for (std::size_t k = 0; k < block.ops().size(); ++k) {
      const Op& op = *block.ops()[k].op;
      if (op.location().empty() && op.made_by().empty()) continue;
      proto::OpExtra* op_extra = out->add_ops();
      op_extra->set_index(static_cast<std::int32_t>(k));
      if (!op.location().empty()) op_extra->set_location(op.location());
      if (!op.made_by().empty()) op_extra->set_made_by(op.made_by());
    }
    needed = needed || out->vars_size() > 0 || out->ops_size() > 0;
  }
  const ProgramMeta& meta = program.meta();
  if (!meta.plan.empty()) extra.set_plan(meta.plan);
  if (!meta.name.empty()) extra.set_name(meta.name);
  if (meta.random_seed != 0) extra.set_random_seed(meta.random_seed);
  extra.mutable_policies()->insert(meta.policies.begin(), meta.policies.end());
  needed =
      needed || extra.has_plan() || extra.has_name() || extra.has_random_seed() || extra.policies_size() > 0;
  if (!needed) return "";
  std::string bytes;
  {
    // Maps are written in key order: the same program gives the same bytes.
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    extra.SerializeToCodedStream(&out);
  }
  return bytes;
}

Status ReadExtra(std::string_view bytes, int block_count, proto::ProgramExtra& extra) {
  if (!extra.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) || !extra.IsInitialized()) {
    return DataLoss("E-program-extra", "the program's extra facts cannot be read");
  }
  if (extra.blocks_size() <= block_count) return OkStatus();
  return InvalidArgument("E-program-extra", "facts are given for ", extra.blocks_size(),
                         " blocks; the program has ", block_count);
}

Status ApplyVarFacts(const proto::BlockExtra& extra, Block& block) {
  for (const proto::VarExtra& facts : extra.vars()) {
    const Var* var = block.FindVar(facts.name());
    if (var == nullptr) {
      return InvalidArgument("E-program-extra", "facts are given for ", Quote(facts.name()), ", which block ",
                             block.index(), " does not declare");
    }
    Var changed = *var;  // the VarDesc itself is unchanged, so its bytes stay
    changed.facts = ReadFacts(facts);
    block.SetVar(std::move(changed));
  }
  return OkStatus();
}

Status ApplyOpFacts(const proto::BlockExtra& extra, int block, std::vector<Op>& ops) {
  for (const proto::OpExtra& facts : extra.ops()) {
    if (facts.index() < 0 || facts.index() >= static_cast<int>(ops.size())) {
      return InvalidArgument("E-program-extra", "facts are given for op ", facts.index(), " of block ", block,
                             ", which has ", ops.size());
    }
    ops[static_cast<std::size_t>(facts.index())].SetLocation(facts.location()).SetMadeBy(facts.made_by());
  }
  return OkStatus();
}

void ApplyMeta(const proto::ProgramExtra& extra, ProgramMeta& meta) {
  meta.plan = extra.plan();
  meta.name = extra.name();
  meta.random_seed = extra.random_seed();
  meta.policies = {extra.policies().begin(), extra.policies().end()};
}

}  // namespace penstock
