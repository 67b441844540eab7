// send: hands variables to the parameter servers that hold their counterparts.
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/comm.h"
#include "operators/common/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
X[i] goes to server epmap[i], under its own name, as this trainer's contribution to the step now open. The
op does not wait: the runtime keeps the elements until the server has them. Out, a control variable, orders
what follows. With use_send_handler=false nothing is sent: the servers of epmap are told that the schedule of
the learning rate is to count this step.

Residual, of a gradient that is compressed with error feedback, is what was not sent of it in earlier steps,
shaped like the whole parameter of which X are rows, in their order. The op adds the gradient, sends what the
job's compression makes of the sum, and leaves the rest in ResidualOut.

With send_varnames, X is one whole gradient, of which rows are sent under each of these names: `sections` says
how many. The trainer's communicator cuts it, and its mode says when what is sent.)";

class SendKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const roles::SendView send(k.op());
    residual_ = k.Input("Residual");
    if (send.by_communicator() && !send.counts_step()) return PrepareWhole(k, send);
    PENSTOCK_ASSIGN_OR_RETURN(client_, RequireRpc(k));
    const roles::Names servers = send.addresses();
    if (send.counts_step()) {
      if (send.by_communicator()) {
        PENSTOCK_ASSIGN_OR_RETURN(communicator_, RequireCommunicator(k));
      }
      PENSTOCK_ASSIGN_OR_RETURN(counted_at_, client_->DeclarePeers(TextsOf(servers), TrainerOf(k)));
      return OkStatus();
    }
    const auto variables = k.Inputs("X");
    PENSTOCK_RETURN_IF_ERROR(CheckServers(k, variables.size(), servers));
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const RemotePiece piece = PieceOf(variables[i], servers[i], variables[i].name, TrainerOf(k));
      PENSTOCK_ASSIGN_OR_RETURN(const PushHandle handle, client_->DeclarePush(piece));
      pieces_.push_back({variables[i], handle});
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (counted_at_.index >= 0)
      return communicator_ != nullptr ? communicator_->CountStep(counted_at_)
                                      : client_->CountStep(counted_at_);
    if (communicator_ != nullptr)
      return communicator_->Send(whole_, k.Var(gradient_), residual_ ? k[residual_] : Tensor());
    if (residual_) return PushWithResidual(k);
    for (const Piece& piece : pieces_)
      PENSTOCK_RETURN_IF_ERROR(client_->Push(piece.handle, k.Var(piece.variable)));
    return OkStatus();
  }

 private:
  struct Piece {
    Operand variable;
    PushHandle handle;
  };

  Status PushWithResidual(KernelRun& k) {
    const Tensor& whole = k[residual_];
    Dim begin = 0;
    for (const Piece& piece : pieces_) {
      const Tensor& rows = k[piece.variable];
      const Dim end = begin + (rows.shape().rank() == 0 ? 1 : rows.shape()[0]);
      if (pieces_.size() > 1 && (whole.shape().rank() == 0 || end > whole.shape()[0])) {
        return InvalidArgument("E-send-residual", "send: Residual (", residual_.name, ") is ", whole.shape(),
                               ", and X has ", end, " rows");
      }
      const Tensor left = pieces_.size() > 1 ? whole.Rows(begin, end) : whole;
      PENSTOCK_RETURN_IF_ERROR(client_->PushWithResidual(piece.handle, rows, left));
      begin = end;
    }
    return OkStatus();
  }

  Status PrepareWhole(const KernelSetup& k, const roles::SendView& send) {
    PENSTOCK_ASSIGN_OR_RETURN(TrainerCommunicator* const communicator, RequireCommunicator(k));
    PENSTOCK_ASSIGN_OR_RETURN(WholeVariable whole, CutOf(k));
    whole.adds = send.adds();
    PENSTOCK_ASSIGN_OR_RETURN(whole_, communicator->DeclareGradient(whole));
    gradient_ = k.Input("X");
    communicator_ = communicator;
    return OkStatus();
  }

  RpcClient* client_ = nullptr;
  std::vector<Piece> pieces_;
  PeersHandle counted_at_;                       // of an op that only tells these servers of the step
  TrainerCommunicator* communicator_ = nullptr;  // null: the pieces are sent at once
  Operand gradient_;
  GradientHandle whole_;
  Operand residual_;  // absent: nothing is left behind
};

}  // namespace

void RegisterSend(OpRegistry& ops) {
  ops.Add("send")
      .Doc("Sends variables to parameter servers.", kDoc)
      .Input("X", "what is sent", AnyType(), Optional() | Repeated() | TensorOrRows())
      .Input("Residual", "what earlier steps left behind; shaped like the whole parameter",
             Only(DType::kFp32), Optional())
      .Output("ResidualOut", "what this step leaves behind; names Residual's variable", Only(DType::kFp32),
              Optional())
      .Output("Out", "a control variable", AnyType(), Optional() | Repeated() | OfAnyKind())
      .Attr("trainer_id", 0, "who sends", AtLeast(0))
      .Attr("epmap", std::vector<std::string>{"127.0.0.1:6164"}, "the server of each X")
      .Attr("sections", std::vector<std::int64_t>(), "for the communicator: the rows of each piece")
      .Attr("send_varnames", std::vector<std::string>(), "for the communicator: the pieces' names")
      .Attr("num", 0, kNoEffect)
      .Attr("merge_add", false, "for the communicator: add waiting gradients instead of averaging them")
      .Attr("use_send_handler", true,
            "false: tell the servers to count a step of the learning rate's schedule")
      .InferShape(OutputsAsDeclared())
      .SideEffect()
      .NoGrad()
      .KernelForAnyType<Cpu, SendKernel>();
}

}  // namespace penstock
