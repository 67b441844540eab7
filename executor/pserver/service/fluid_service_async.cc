// Calls of asynchronous trainers: there are no phases, and each trainer ends its own steps. A gradient is
// answered once it is welcome, so a trainer is no further ahead of its applied gradients than on our own
// wire.
#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/pserver/machine/actions.h"
#include "executor/pserver/service/fluid_service.h"

namespace penstock::pserver {
namespace {

using transport::UnaryReply;

// The maximum number of steps in one notification; a trainer's communicator adds up a few.
constexpr std::int64_t kCountsMax = 1024;

}  // namespace

void FluidService::TakeUnphased(Call call) {
  const std::string& method = call.method;
  const std::string& name = call.message.varname;
  if (method == "SendVariable") {
    if (name == protocol::kFluidComplete) return TakeComplete(std::move(call));
    if (name == protocol::kBatchBarrier) return Answer(std::move(call), UnaryReply(Payload()));
    if (const auto gradient = gradients_.find(name); gradient != gradients_.end())
      return TakeGradientNow(std::move(call), gradient->second.param);
    return TakeSend(std::move(call));  // an initial value, or an unknown variable
  }
  if (method == "GetVariable") {
    if (name == protocol::kFetchBarrier) return Answer(std::move(call), UnaryReply());
    if (const Result<int> trainer = Identify(call); trainer.ok()) EndOpenStep(*trainer);
    return TakeFetch(std::move(call), std::string(name));
  }
  if (method == "GetVariableNoBarrier") return TakeGetNow(std::move(call));
  if (method == "PrefetchVariable") {
    EndOpenStep(TrainerOf(call.caller));
    return TakeLookup(std::move(call));
  }
  if (method == "CheckpointNotify") return TakeSave(std::move(call));
  TakeCount(std::move(call));
}

// All trainers send the gradient under the same name; the call carries the trainer's id.
void FluidService::TakeGradientNow(Call call, int param) {
  const Result<int> trainer = Identify(call);
  if (!trainer.ok()) return Refuse(std::move(call), trainer.status());
  if (const Status here = CheckHere(*trainer); !here.ok()) return Refuse(std::move(call), here);
  const roles::ServedParam& served = served_.role.params[static_cast<std::size_t>(param)];
  protocol::ContractPiece piece = served.param;
  if (served.by_id) piece.shape = piece.shape.WithRows(kUnknownDim);  // no height is agreed upon
  if (const Status fits = CheckTensor(call.message, piece, served.rows); !fits.ok())
    return Refuse(std::move(call), fits);
  Greet(*trainer);
  Trainer& from = At(*trainer);
  const std::uint32_t variable = from.said->PushedFor(param);
  if (from.pushed.contains(variable)) EndOpenStep(*trainer);
  from.pushed.insert(variable);
  from.waiting[param].push_back({.call = std::move(call), .step = from.step});
  SendWelcome(*trainer, param);
  if (from.waiting[param].size() == 1) AskForCredit(*trainer, param);  // later ones wait for the same credit
}

// As in Fluid's server, the notified number is added to the trainer's counter and advances the schedule by
// as much.
void FluidService::TakeCount(Call call) {
  const Result<int> trainer = Identify(call);
  if (!trainer.ok()) return Refuse(std::move(call), trainer.status());
  if (const Status here = CheckHere(*trainer); !here.ok()) return Refuse(std::move(call), here);
  const auto& counters = served_.role.counters;
  const std::string name = call.message.varname;
  if (counters.empty() || counters[static_cast<std::size_t>(*trainer)] != name)
    return Refuse(std::move(call), Unserved(name, "counts no steps by"));
  const auto& value = call.message.tensor;
  std::int64_t counts = 0;
  if (value && value->dtype == DType::kInt64 && value->values.size() == sizeof(counts))
    std::memcpy(&counts, value->values.ToText().data(), sizeof(counts));
  if (counts < 1 || counts > kCountsMax) {
    return Refuse(std::move(call),
                  InvalidArgument("E-wire-variable", name, ": a notification counts from 1 to ", kCountsMax,
                                  " steps, in one int64"));
  }
  Greet(*trainer);
  Trainer& from = At(*trainer);
  for (; counts > 0; --counts) {
    if (from.counted) EndOpenStep(*trainer);
    from.counted = true;
    Post(*trainer, protocol::CountStep{.step = from.step});
  }
  Answer(std::move(call), UnaryReply(Payload()));
}

void FluidService::EndOpenStep(int trainer) {
  Trainer& ends = At(trainer);
  if (ends.pushed.empty() && !ends.counted) return;
  Post(trainer, protocol::EndStep{.step = ends.step, .variables = {ends.pushed.begin(), ends.pushed.end()}});
  ends.pushed.clear();
  ends.counted = false;
  ++ends.step;
}

std::optional<std::uint32_t> FluidService::Unwelcome(int trainer, int param, std::uint64_t step) const {
  if (step < MachineConfig().window) return std::nullopt;
  const Trainer& from = trainers_[static_cast<std::size_t>(trainer)];
  const auto known = from.welcome_below.find(param);
  if (known == from.welcome_below.end()) return 0;
  const std::vector<std::uint64_t>& below = known->second;
  const auto first = std::find_if(below.begin(), below.end(), [&](std::uint64_t end) { return step >= end; });
  if (first == below.end()) return std::nullopt;
  return static_cast<std::uint32_t>(first - below.begin());
}

void FluidService::SendWelcome(int trainer, int param) {
  Trainer& from = At(trainer);
  std::deque<Waiting>& waiting = from.waiting[param];
  for (; !waiting.empty() && !Unwelcome(trainer, param, waiting.front().step); waiting.pop_front()) {
    Call& call = waiting.front().call;
    Push(trainer, from.said->PushedFor(param), param, waiting.front().step, *call.message.tensor);
    Answer(std::move(call), UnaryReply(Payload()));
  }
}

// Asks for credit, because steps without a gradient of the param raise it without a message. After an update
// the handler sends it unasked.
void FluidService::AskForCredit(int trainer, int param) {
  const Trainer& from = At(trainer);
  const auto waiting = from.waiting.find(param);
  if (waiting == from.waiting.end() || waiting->second.empty()) return;
  const std::uint64_t step = waiting->second.front().step;
  if (const std::optional<std::uint32_t> chunk = Unwelcome(trainer, param, step)) {
    Post(trainer, protocol::Ask{.about = protocol::ChunkRef{from.said->PushedFor(param), *chunk},
                                .step = step,
                                .waits_for = {}});
  }
}

void FluidService::TakeCredit(int trainer, const protocol::Sender& to, const protocol::ChunkRef& at,
                              std::uint64_t below) {
  if (!async()) return;
  Trainer& from = At(trainer);
  const std::optional<int> param = Named(trainer, to).ParamOfGrad(at.variable);
  if (!param) return;
  std::vector<std::uint64_t>& chunks = from.welcome_below[*param];
  chunks.resize(std::max(chunks.size(), ChunkCount(*param)));
  if (chunks[at.chunk] >= below) return;
  chunks[at.chunk] = below;
  SendWelcome(trainer, *param);
  AskForCredit(trainer, *param);
}

}  // namespace penstock::pserver
