// send: hands variables to the parameter servers that hold their counterparts.
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/comm.h"
#include "operators/common/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Sends X[i] to server epmap[i] under its own name, as this trainer's contribution to the current step. The op
does not wait: the runtime keeps the elements until the server has them. Out, a control variable, orders later
ops after it. With use_send_handler=false nothing is sent: the servers of epmap are told that the
learning-rate schedule counts this step.

If a gradient is compressed with error feedback, Residual is the part of it that earlier steps did not send.
It has the shape of the whole parameter, of which X are rows in their order. The op adds the gradient, sends
the compressed sum, and stores the remainder in ResidualOut.

With send_varnames, X is one whole gradient, whose rows are sent under these names; `sections` holds the
number of rows of each. The trainer's communicator splits the gradient, and its mode determines what is sent
when.

With send_varnames and without sections, or without X, nothing is sent here: the op ends a step of geo-SGD, in
which the ids X[i] of rows of table send_varnames[i] were looked up. If X is itself named in send_varnames,
the op marks the end of the startup program and does nothing.)";

class SendKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const roles::SendView send(k.op());
    residual_ = k.Input("Residual");
    if (send.tells_communicator()) return PrepareNotice(k, send);
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
      const RemotePiece piece =
          PieceOf(variables[i], servers[i], std::string(variables[i].name), TrainerOf(k));
      PENSTOCK_ASSIGN_OR_RETURN(const PushHandle handle, client_->DeclarePush(piece));
      pieces_.push_back({variables[i], piece, handle});
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (tells_step_) return TellStep(k);
    if (counted_at_.index >= 0)
      return communicator_ != nullptr ? communicator_->CountStep(counted_at_)
                                      : client_->CountStep(counted_at_);
    if (communicator_ != nullptr)
      return communicator_->Send(whole_, k.Var(gradient_), residual_ ? k[residual_] : Tensor());
    if (residual_) return PushWithResidual(k);
    if (TrainerCommunicator* const other = client_->communicator(); other != nullptr && other->ends_steps())
      return PassOn(*other, k);
    for (const Piece& piece : pieces_)
      PENSTOCK_RETURN_IF_ERROR(client_->Push(piece.handle, k.Var(piece.variable)));
    return OkStatus();
  }

 private:
  struct Piece {
    Operand variable;
    RemotePiece remote;
    PushHandle handle;
    GradientHandle passed_on = {};  // once a communicator has ended steps
  };

  // Hands the pieces to a communicator that ends the client's steps.
  Status PassOn(TrainerCommunicator& communicator, KernelRun& k) {
    for (Piece& piece : pieces_) {
      if (piece.passed_on.index < 0) {
        const Dim rows = piece.remote.shape.rank() == 0 ? 1 : piece.remote.shape[0];
        const WholeVariable whole{.name = piece.remote.name, .pieces = {{piece.remote, 0, rows}}};
        PENSTOCK_ASSIGN_OR_RETURN(piece.passed_on, communicator.DeclareGradient(whole));
      }
      PENSTOCK_RETURN_IF_ERROR(communicator.Send(piece.passed_on, k.Var(piece.variable), {}));
    }
    return OkStatus();
  }

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

  struct Touched {
    Operand ids;
    TableHandle table;
  };

  Status PrepareNotice(const KernelSetup& k, const roles::SendView& send) {
    const auto ids = k.Inputs("X");
    if (ids.size() != send.messages().size()) {
      return k.Error("it names ", send.messages().size(), " tables for ", ids.size(), " variables of ids");
    }
    PENSTOCK_ASSIGN_OR_RETURN(communicator_, RequireCommunicator(k));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i].kind != VarKind::kTensor || ids[i].dtype != DType::kInt64)
        return k.Error(ids[i].name, ", by which rows of ", send.messages()[i],
                       " are looked up, must be a tensor of int64");
      PENSTOCK_ASSIGN_OR_RETURN(const TableHandle table, communicator_->DeclareTable(send.messages()[i]));
      touched_.push_back({ids[i], table});
    }
    tells_step_ = true;
    return OkStatus();
  }

  Status TellStep(KernelRun& k) {
    for (const Touched& touched : touched_)
      PENSTOCK_RETURN_IF_ERROR(communicator_->Touch(touched.table, k[touched.ids].Span<std::int64_t>()));
    return communicator_->EndLocalStep(k.scope());
  }

  Status PrepareWhole(const KernelSetup& k, const roles::SendView& send) {
    PENSTOCK_ASSIGN_OR_RETURN(TrainerCommunicator* const communicator, RequireCommunicator(k));
    PENSTOCK_ASSIGN_OR_RETURN(WholeVariable whole, CutOf(k));
    whole.adds = send.adds();
    PENSTOCK_ASSIGN_OR_RETURN(whole_, communicator->DeclareGradient(whole));
    k.Bind(gradient_);
    communicator_ = communicator;
    return OkStatus();
  }

  RpcClient* client_ = nullptr;
  std::vector<Piece> pieces_;
  PeersHandle counted_at_;                       // of an op that only tells these servers of the step
  TrainerCommunicator* communicator_ = nullptr;  // null: the pieces are sent at once
  bool tells_step_ = false;
  std::vector<Touched> touched_;  // in the step that it tells of
  In<"X"> gradient_;
  GradientHandle whole_;
  NamedOperand residual_;  // absent: nothing is left behind
};

}  // namespace

void RegisterSend(OpRegistry& ops) {
  ops.Add("send")
      .Doc("Sends variables to parameter servers.", kDoc)
      .Input("X", "what is sent", AnyType(), Optional() | Repeated() | TensorOrRows())
      .Input("Residual",
             "what earlier steps left behind; shaped like the whole parameter; not a slot of Fluid's",
             Only(DType::kFp32), Optional())
      .Output("ResidualOut", "what this step leaves behind; names Residual's variable; not a slot of Fluid's",
              Only(DType::kFp32), Optional())
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
      .Affects({Effect::kStep})
      .NoGrad()
      .KernelForAnyType<Cpu, SendKernel>();
}

}  // namespace penstock
