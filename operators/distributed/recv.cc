// recv: fetches variables from the parameter servers that hold them.
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/comm.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] gets the value that server epmap[i] holds under varnames[i], or under Out[i]'s own name if varnames is
empty: the version after this trainer's last send_barrier, or the initial version if there was none yet. The
value may arrive as late as the following fetch_barrier, or, without one, when an op first uses it. X, a
control variable, orders the op after the sends. Between a send_barrier and a fetch_barrier, the executor may
request a parameter earlier: once its gradient is sent and no later op reads its old value.

With recv_varnames, Out is one whole parameter, of which servers hold rows under these names. The trainer's
communicator requests them when its mode says so; this op copies the newest value that the communicator has to
Out.)";

class RecvKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const roles::RecvView recv(k.op());
    if (recv.by_communicator()) return PrepareWhole(k);  // also where do_not_run says that it receives
    if (recv.idle()) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(client_, RequireRpc(k));
    const roles::Names servers = recv.addresses(), names = recv.renamed();
    const auto variables = k.Outputs("Out");
    PENSTOCK_RETURN_IF_ERROR(CheckServers(k, variables.size(), servers));
    if (!names.empty() && names.size() != variables.size()) {
      return k.Error("varnames holds ", names.size(), " names for ", variables.size(), " variables");
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const std::string remote(names.empty() ? variables[i].name : std::string_view(names[i]));
      PENSTOCK_ASSIGN_OR_RETURN(
          const PullHandle handle,
          client_->DeclarePull(PieceOf(variables[i], servers[i], remote, TrainerOf(k))));
      pieces_.push_back({variables[i], handle});
    }
    next_version_ = recv.next_version();
    waits_ = !k.site().awaited;
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (communicator_ != nullptr) return communicator_->Land(whole_, k.Var(param_));
    for (const Piece& piece : pieces_) {
      if (next_version_) {
        PENSTOCK_RETURN_IF_ERROR(client_->PullNext(piece.handle, k.Var(piece.variable)));
        continue;
      }
      const bool last = waits_ && &piece == &pieces_.back();
      PENSTOCK_RETURN_IF_ERROR(last ? client_->Pull(piece.handle, k.Var(piece.variable))
                                    : client_->PullAhead(piece.handle, k.Var(piece.variable)));
    }
    return OkStatus();
  }

 private:
  struct Piece {
    Operand variable;
    PullHandle handle;
  };

  Status PrepareWhole(const KernelSetup& k) {
    PENSTOCK_ASSIGN_OR_RETURN(TrainerCommunicator* const communicator, RequireCommunicator(k));
    PENSTOCK_ASSIGN_OR_RETURN(const WholeVariable whole, CutOf(k));
    PENSTOCK_ASSIGN_OR_RETURN(whole_, communicator->DeclareParam(whole));
    k.Bind(param_);
    communicator_ = communicator;
    return OkStatus();
  }

  RpcClient* client_ = nullptr;
  std::vector<Piece> pieces_;
  bool next_version_ = false;                    // asks for the values after the step's end
  bool waits_ = true;                            // for its pieces
  TrainerCommunicator* communicator_ = nullptr;  // null: the pieces are asked for at once
  Out<"Out"> param_;
  ParamHandle whole_;
};

}  // namespace

void RegisterRecv(OpRegistry& ops) {
  ops.Add("recv")
      .Doc("Fetches variables from parameter servers.", kDoc)
      .Input("X", "control variables", AnyType(), Optional() | Repeated() | OfAnyKind())
      .Output("Out", "what is fetched; shaped as declared", AnyType(), Repeated())
      .Attr("epmap", std::vector<std::string>(), "the server of each Out")
      .Attr("trainer_id", 0, "who asks", AtLeast(0))
      .Attr("with_barrier", true,
            "false: asked outside of a step, for saving; the version asked for is the same here")
      .Attr("varnames", std::vector<std::string>(), "the names on the servers; empty: those of Out")
      .Attr("recv_varnames", std::vector<std::string>(), "for the communicator: the pieces' names")
      .Attr("do_not_run", 0,
            "above 0: does nothing, unless recv_varnames says that the communicator receives")
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kStep})
      .NoGrad()
      .KernelForAnyType<Cpu, RecvKernel>();
}

}  // namespace penstock
