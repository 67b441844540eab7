// listen_and_serv: makes this process a parameter server.
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/server_loop.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Listens on `endpoint` for `Fanin` trainers, merges the gradients that they send, runs for each gradient the
block to which grad_to_block_id ("gradient:block") binds it, and answers requests for parameters. Returns when
all trainers have completed.)";

class ListenAndServKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    server_ = k.services().server;
    program_ = k.site().program;
    op_ = k.op();
    if (server_ != nullptr && program_ != nullptr) return OkStatus();
    return FailedPrecondition("E-comm-no-server",
                              "listen_and_serv: this process was not started to serve; run the program as ",
                              "a pserver of a job");
  }
  Status Run(KernelRun& k) override { return server_->Serve(*program_, op_, k.scope()); }

 private:
  ServerLoop* server_ = nullptr;
  const Program* program_ = nullptr;
  Op op_;
};

}  // namespace

void RegisterListenAndServ(OpRegistry& ops) {
  ops.Add("listen_and_serv")
      .Doc("Serves parameters to trainers until they have completed.", kDoc)
      .Input("X", "the gradients' variables; not read", AnyType(), Optional() | Repeated() | OfAnyKind())
      .Attr("endpoint", "127.0.0.1:6164", "where it listens, host:port; port 0: any")
      .Attr("pserver_id", -1, "its position among the servers")
      .Attr("grad_to_block_id", std::vector<std::string>(), "which block each gradient runs")
      .Attr("distributed_mode", 0, "0 sync, 1 async, 2 half async, 3 geo", AtLeast(0))
      .Attr("dc_asgd", false, "whether late gradients are corrected")
      .Attr("optimize_blocks", std::vector<BlockRef>(), "the blocks that update parameters")
      .Attr("prefetch_var_name_to_block_id", std::vector<std::string>(), "which block answers each look-up")
      .Attr("sparse_grad_to_param", std::vector<std::string>(), "the table of each sparse gradient")
      .Attr("Fanin", 1, "how many trainers there are", AtLeast(1))
      .Attr("checkpint_block_id", -1, "the block that saves a table; Fluid's spelling")
      .Attr("lr_decay_block_id", -1, "the block that computes the learning rate")
      .ImplicitAttr(
          "start_values", std::vector<std::string>(),
          "held as trainer 0 sends it at the start, for all trainers to receive; not an attribute of Fluid's")
      .Attr("rpc_get_thread_num", 1, "of Fluid's server; no effect here")
      .Attr("rpc_send_thread_num", 1, "of Fluid's server; no effect here")
      .Attr("rpc_prefetch_thread_num", 1, "of Fluid's server; no effect here")
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kStep})
      .NoGrad()
      .KernelForAnyType<Cpu, ListenAndServKernel>();
}

}  // namespace penstock
