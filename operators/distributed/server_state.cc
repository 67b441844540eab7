// checkpoint_notify, recv_save, sparse_tensor_load: the ops by which Fluid's programs tell servers to save
// and load. The last two are only declared, so that such programs can be read, checked and exchanged; this
// project's servers save their state themselves.
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/comm.h"

namespace penstock {
namespace {

constexpr char kNotifyDoc[] = R"(
Asks each server of epmap to save lookup_table in its state after this trainer's last send_barrier. Server i
saves it on its own disk, to dir/lookup_table_i. Returns when all have saved. lookup_table is a table sharded
by id, of which a server saves its rows, and their optimizer state to dir/lookup_table_i.state; or a slice of
a parameter, which it saves with its optimizer state (executor/pserver). A server saves only for trainer 0,
and only inside its folder (PENSTOCK_CHECKPOINT_DIR), to which dir is relative.)";

constexpr char kSaveDoc[] = R"(
Fetches the slices remote_varnames of one variable from endpoints, one address per slice, and writes them to
file_path as one variable of attribute shape. slice_shapes holds each slice's shape as text, slice_varnames
its local name.)";

constexpr char kLoadDoc[] = R"(
Reads this server's rows of a table from a file that recv_save wrote.)";

constexpr char kNotOurs[] = "servers keep their state by themselves; save and load by fluid.io instead";

class NotifyKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(client_, RequireRpc(k));
    const roles::Names servers = roles::SaveView(k.op()).addresses();
    table_ = k.Attr<std::string>("lookup_table");
    PENSTOCK_ASSIGN_OR_RETURN(servers_, client_->DeclarePeers(TextsOf(servers), TrainerOf(k)));
    for (std::size_t i = 0; i < servers.size(); ++i)
      files_.push_back(StrCat(k.Attr<std::string>("dir"), "/", table_, "_", i));
    return OkStatus();
  }
  Status Run(KernelRun&) override { return client_->SaveTable(servers_, table_, files_); }

 private:
  RpcClient* client_ = nullptr;
  PeersHandle servers_;
  std::string table_;
  std::vector<std::string> files_;
};

OpDef& Finish(OpDef& def) { return def.InferShape(OutputsAsDeclared()).Affects({Effect::kStep}).NoGrad(); }

}  // namespace

void RegisterServerState(OpRegistry& ops) {
  Finish(ops.Add("checkpoint_notify").Doc("Asks servers to save a table.", kNotifyDoc))
      .RequiredAttr("epmap", AttrKind::kStrings, "the servers' addresses")
      .RequiredAttr("dir", AttrKind::kString, "where they save it")
      .RequiredAttr("lookup_table", AttrKind::kString, "the table")
      .Attr("trainer_id", 0, "who asks", AtLeast(0))
      .KernelForAnyType<Cpu, NotifyKernel>();
  Finish(ops.Add("recv_save").Doc("Writes a variable that servers hold in slices to a file.", kSaveDoc))
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "its element type, as Fluid numbers them")
      .Attr("overwrite", true, "whether the file may be there already")
      .RequiredAttr("file_path", AttrKind::kString, "the file")
      .Attr("shape", std::vector<std::int64_t>(), "the variable's shape", AtLeast(0))
      .Attr("slice_varnames", std::vector<std::string>(), "what each slice is called here")
      .Attr("remote_varnames", std::vector<std::string>(), "what each slice is called there")
      .Attr("slice_shapes", std::vector<std::string>(), "the shape of each slice, as text")
      .Attr("endpoints", std::vector<std::string>(), "the server of each slice")
      .Attr("trainer_id", 0, "who asks", AtLeast(0))
      .NotBuilt(kNotOurs);
  Finish(ops.Add("sparse_tensor_load").Doc("Reads a server's rows of a table from a file.", kLoadDoc))
      .NotBuilt(kNotOurs);
}

}  // namespace penstock
