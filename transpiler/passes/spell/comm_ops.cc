#include "transpiler/passes/spell/comm_ops.h"

#include <cstdint>

namespace penstock::passes {
namespace {

// Fluid gives every server this many threads for each of three kinds of request.
constexpr std::int32_t kFluidThreads = 12;

constexpr char kListenAndServ[] = "listen_and_serv";
constexpr char kSend[] = "send";
constexpr char kMessagesAttr[] = "send_varnames";
constexpr char kHalfAsyncAttr[] = "half_async";
constexpr char kBackupsAttr[] = "dc_asgd";

// Fluid's address for a send that names no server.
constexpr char kNowhere[] = "127.0.0.1:6164";

// The lookup whose ids end in an extent of 1.
constexpr char kFirstLookup[] = "lookup_table";

}  // namespace

Op WithFrame(Op op, OpRole role, NameList role_pair) {
  op.SetRole(role).Set(kRoleVarAttr, std::move(role_pair));
  op.Set(kNameScopeAttr, "/").Set(kDeviceAttr, "");
  return op;
}

Op MakeSplitRows(const plan::ParamPlacement& param, const std::string& grad, const NameList& pieces) {
  Op op(param.sparse ? "split_selected_rows" : "split_byref");
  op.AddInput("X", {grad}).AddOutput("Out", pieces);
  if (param.sparse) {
    std::vector<std::int64_t> rows;
    for (const plan::Slice& slice : param.slices) rows.push_back(slice.rows());
    op.Set("height_sections", std::move(rows));
  } else {
    std::vector<std::int32_t> rows;
    for (const plan::Slice& slice : param.slices) rows.push_back(static_cast<std::int32_t>(slice.rows()));
    op.Set("sections", std::move(rows)).Set("num", 0);
  }
  return WithFrame(std::move(op), OpRole::kDist);
}

Op MakeSend(const SendSpec& spec) {
  Op op(kSend);
  op.AddInput("X", spec.pieces).AddOutput("Out", spec.done.empty() ? NameList() : NameList{spec.done});
  op.Set("epmap", spec.addresses).Set("sections", spec.sections).Set(kMessagesAttr, spec.messages);
  op.Set("num", 0).Set("merge_add", false).Set("use_send_handler", true).Set("trainer_id", spec.trainer_id);
  return WithFrame(std::move(op), OpRole::kRpc,
                   spec.param.empty() ? NameList() : NameList{spec.param, spec.grad});
}

bool IsSend(const Op& op) { return op.type() == kSend; }

void SetMessages(Op& send, NameList messages) { send.Set(kMessagesAttr, std::move(messages)); }

Op MakeStepNotice(const std::string& counter, const NameList& addresses, int trainer_id,
                  const std::string& done) {
  Op op = MakeSend({.pieces = {counter},
                    .sections = {},
                    .messages = {},
                    .addresses = addresses,
                    .trainer_id = trainer_id,
                    .param = counter,
                    .grad = counter,
                    .done = done});
  return op.Set("merge_add", true).Set("use_send_handler", false);
}

Op MakeNotice(const NameList& vars, const NameList& names, int trainer_id, const std::string& done) {
  Op op("send");
  op.AddInput("X", vars).AddOutput("Out", {done});
  op.Set("epmap", NameList{kNowhere})
      .Set("sections", std::vector<std::int64_t>())
      .Set("send_varnames", names);
  op.Set("num", 0).Set("merge_add", false).Set("use_send_handler", true).Set("trainer_id", trainer_id);
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeSendBarrier(const NameList& after, const NameList& addresses, int trainer_id,
                   const std::string& done) {
  Op op("send_barrier");
  op.AddInput("X", after).AddOutput("Out", {done});
  op.Set("endpoints", addresses).Set("trainer_id", trainer_id).Set(kHalfAsyncAttr, false);
  return WithFrame(std::move(op), OpRole::kRpc);
}

Op MakeCommunicatorBarrier(const NameList& after, const NameList& addresses, int trainer_id,
                           const std::string& done) {
  return MakeSendBarrier(after, addresses, trainer_id, done).Set(kHalfAsyncAttr, true);
}

Op MakeRecv(const RecvSpec& spec) {
  Op op("recv");
  op.AddInput("X", spec.after).AddOutput("Out", spec.pieces);
  op.Set("epmap", spec.addresses).Set("trainer_id", spec.trainer_id);
  op.Set("recv_varnames", spec.messages)
      .Set("varnames", NameList())
      .Set("with_barrier", true)
      .Set("do_not_run", 0);
  return WithFrame(std::move(op), OpRole::kRpc, spec.role_pair);
}

Op MakeFetchBarrier(const NameList& after, const NameList& addresses, int trainer_id,
                    const NameList& outputs) {
  Op op("fetch_barrier");
  op.AddInput("X", after).AddOutput("Out", outputs);
  op.Set("endpoints", addresses).Set("trainer_id", trainer_id);
  return WithFrame(std::move(op), OpRole::kRpc);
}

Op MakeStartupFetchBarrier(const NameList& addresses, int trainer_id, const std::string& done) {
  return MakeFetchBarrier({}, addresses, trainer_id, {done});
}

Op MakeJoinRows(const NameList& pieces, const std::string& whole, OpRole role) {
  Op op("concat");
  op.AddInput("X", pieces).AddInput("AxisTensor", {}).AddOutput("Out", {whole});
  op.Set("axis", 0).Set("use_mkldnn", false).Set("use_quantizer", false);
  return WithFrame(std::move(op), role);
}

Op MakeRemoteLookup(const LookupSpec& spec) {
  Op op("distributed_lookup_table");
  op.AddInput("Ids", spec.ids).AddInput("W", {spec.table}).AddOutput("Outputs", spec.outputs);
  op.Set("table_names", spec.pieces).Set("height_sections", spec.rows).Set("endpoints", spec.addresses);
  op.Set("padding_idx", spec.padding_idx).Set("trainer_id", spec.trainer_id);
  op.Set("lookup_table_version", spec.lookup_type).Set("dtype", static_cast<std::int32_t>(DType::kFp32));
  return WithFrame(std::move(op), OpRole::kForward);
}

Op WithSlices(const Op& sampler, const LookupSpec& spec) {
  Op op = sampler;
  op.Set("epmap", spec.addresses).Set("table_names", spec.pieces).Set("height_sections", spec.rows);
  return op.Set("trainer_id", spec.trainer_id);
}

Op MakeSplitIds(const NameList& ids, const NameList& pieces, OpRole role) {
  Op op("split_ids");
  op.AddInput("Ids", ids).AddOutput("Out", pieces);
  return WithFrame(std::move(op), role);
}

Op MakeMergeRows(const std::string& from, const std::string& into) {
  Op op("merge_selected_rows");
  op.AddInput("X", {from}).AddOutput("Out", {into});
  return WithFrame(std::move(op), OpRole::kDist);
}

Op MakePrefetch(const ShardRequestSpec& spec) {
  Op op("prefetch");
  op.AddInput("X", spec.asked).AddOutput("Out", spec.answered);
  op.Set("epmap", spec.addresses).Set("trainer_id", spec.trainer_id);
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeMergeIds(const ShardRequestSpec& spec) {
  Op op("merge_ids");
  op.AddInput("Ids", spec.ids).AddInput("Rows", spec.asked).AddInput("X", spec.answered);
  op.AddOutput("Out", spec.outputs);
  // The lookup type decides whether the last extent, 1, of the ids is dropped. Fluid's op has no attribute
  // for it and assumes the type that drops it.
  if (spec.lookup_type != kFirstLookup) op.Set("lookup_table_version", spec.lookup_type);
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeTableLookup(const std::string& ids, const std::string& table, const std::string& rows,
                   std::int64_t padding_idx) {
  Op op("lookup_sparse_table");
  op.AddInput("Ids", {ids}).AddInput("W", {table}).AddOutput("Out", {rows});
  op.Set("padding_idx", padding_idx).Set("auto_grown_table", true).Set("is_test", false);
  return WithFrame(std::move(op), OpRole::kForward);
}

// The path comes from kTablePathVar at run time; the attribute has Fluid's value.
Op MakeSaveTable(const std::string& table) {
  Op op("save");
  op.AddInput("X", {table}).Set("file_path", "none");
  op.Set("overwrite", true).Set("save_as_fp16", false);
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeFakeInit(const std::string& table, const Shape& shape) {
  Op op("fake_init");
  op.AddOutput("Out", {table}).Set("shape", shape.dims());
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeSum(const NameList& from, const std::string& into) {
  Op op("sum");
  op.AddInput("X", from).AddOutput("Out", {into}).Set("use_mkldnn", false);
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeScale(const std::string& var, float factor) {
  Op op("scale");
  op.AddInput("X", {var}).AddInput("ScaleTensor", {}).AddOutput("Out", {var});
  op.Set("scale", factor).Set("bias", 0.0f).Set("bias_after_scale", true);
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeExchangeSums(const ExchangeSpec& spec) {
  Op op("exchange_sums");
  op.AddInput("X", spec.own).AddOutput("Out", spec.all);
  op.Set("epmap", spec.owners).Set("endpoints", spec.addresses);
  return WithFrame(std::move(op), OpRole::kRpc);
}

Op MakeAssign(const std::string& from, const std::string& to) {
  Op op("assign");
  op.AddInput("X", {from}).AddOutput("Out", {to});
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeElementwise(std::string_view type, const std::string& x, const std::string& y,
                   const std::string& out) {
  Op op{std::string(type)};
  op.AddInput("X", {x}).AddInput("Y", {y}).AddOutput("Out", {out});
  op.Set("axis", -1).Set("use_mkldnn", false).Set("x_data_format", "").Set("y_data_format", "");
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeRefByTrainerId(const NameList& from, const std::string& trainer_id, const std::string& out) {
  Op op("ref_by_trainer_id");
  op.AddInput("X", from).AddInput("TrainerId", {trainer_id}).AddOutput("Out", {out});
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeListenAndServ(const ServeSpec& spec) {
  Op op(kListenAndServ);
  op.AddInput("X", spec.inputs);
  op.Set("endpoint", spec.address).Set("pserver_id", spec.pserver).Set("Fanin", spec.trainers);
  op.Set("distributed_mode", static_cast<std::int32_t>(spec.mode)).Set(kBackupsAttr, false);
  op.Set("optimize_blocks", spec.blocks).Set("lr_decay_block_id", spec.lr_block);
  op.Set("checkpint_block_id", -1);  // Fluid's spelling
  op.Set("grad_to_block_id", spec.grad_to_block).Set("sparse_grad_to_param", spec.sparse_to_param);
  op.Set("prefetch_var_name_to_block_id", NameList());
  for (const char* kind : {"rpc_get_thread_num", "rpc_send_thread_num", "rpc_prefetch_thread_num"}) {
    op.Set(kind, kFluidThreads);
  }
  return WithFrame(std::move(op), OpRole::kForward);
}

void SetKeepsBackups(Op& serve) { serve.Set(kBackupsAttr, true); }

bool IsListenAndServ(const Op& op) { return op.type() == kListenAndServ; }

void SetStartValues(Op& listen_and_serv, const NameList& names) {
  listen_and_serv.Set("start_values", names);
}

Op WithTables(const Op& listen_and_serv, const TableServeSpec& spec) {
  Op op = listen_and_serv;
  auto blocks = op.GetOr("optimize_blocks", std::vector<BlockRef>());
  blocks.insert(blocks.end(), spec.blocks.begin(), spec.blocks.end());
  auto grads = op.GetOr("grad_to_block_id", NameList());
  grads.insert(grads.end(), spec.grad_to_block.begin(), spec.grad_to_block.end());
  op.Set("optimize_blocks", std::move(blocks)).Set("grad_to_block_id", std::move(grads));
  op.Set("prefetch_var_name_to_block_id", spec.ids_to_block);
  return op.Set("checkpint_block_id", spec.save_block);
}

}  // namespace penstock::passes
