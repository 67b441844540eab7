#include "executor/pserver/service/fluid_service.h"

#include <algorithm>
#include <new>

#include "framework/base/hash.h"

namespace penstock::pserver {

using protocol::VariableMessage;
using transport::UnaryReply;

// A trainer as the handler sees it.
class FluidService::TrainerCaller : public Caller {
 public:
  TrainerCaller(std::weak_ptr<FluidService> service, int trainer)
      : service_(std::move(service)), trainer_(trainer) {}

  void Reply(const protocol::Sender& to, protocol::Reply reply) override {
    if (const auto service = service_.lock()) service->OnReply(trainer_, to, std::move(reply));
  }
  void Admit() override {}
  void Close() override {
    if (const auto service = service_.lock()) service->OnCallerClosed(trainer_);
  }

 private:
  const std::weak_ptr<FluidService> service_;
  const int trainer_;
};

transport::UnaryServerOptions FluidService::Calls() {
  return {.service = protocol::kFluidService,
          .methods = {"SendVariable", "GetVariable", "GetVariableNoBarrier", "PrefetchVariable",
                      "CheckpointNotify", "DistributeNotify"},
          .report = {}};
}

FluidService::FluidService(EventHandler& handler, Served served, std::string job)
    : handler_(handler), served_(std::move(served)), job_(std::move(job)), phases_(served_.role.trainers) {
  const roles::PserverFacts& role = served_.role;
  for (std::size_t p = 0; p < role.params.size(); ++p) {
    const roles::ServedParam& served = role.params[p];
    params_.emplace(served.param.name, static_cast<int>(p));
    for (std::size_t t = 0; t < served.grads.size(); ++t) {
      gradients_.emplace(served.grads[t],
                         Gradient{.trainer = static_cast<int>(t), .param = static_cast<int>(p)});
    }
  }
  trainers_.resize(static_cast<std::size_t>(role.trainers));
}

void FluidService::OnCall(const std::string& caller, const std::string& method, Payload request,
                          transport::UnaryDone done) {
  try {
    Result<VariableMessage> message = protocol::ReadVariableMessage(request);
    {
      const std::lock_guard lock(mutex_);
      Call call{.caller = caller, .method = method, .message = {}, .done = std::move(done)};
      if (message.ok()) {
        call.message = *std::move(message);
        Take(std::move(call));
      } else {
        Refuse(std::move(call), message.status());
      }
    }
    Flush();
  } catch (const std::bad_alloc&) {
    handler_.OnNoMemory();
  }
}

void FluidService::Take(Call call) {
  if (failed_) return Refuse(std::move(call), *failed_);
  if (async()) return TakeUnphased(std::move(call));
  const std::string& method = call.method;
  if (method == "SendVariable") return TakeSend(std::move(call));
  if (method == "GetVariable") return TakeGet(std::move(call));
  if (method == "GetVariableNoBarrier") return TakeGetNow(std::move(call));
  if (method == "PrefetchVariable") return TakeLookup(std::move(call));
  if (method == "CheckpointNotify") return TakeSave(std::move(call));
  const std::string name = call.message.varname;
  Refuse(std::move(call), Unimplemented("E-wire-method", name, ": a sync server takes no ", method));
}

// Keeps the call until the other phase.
void FluidService::Hold(Call call) { held_.push_back(std::move(call)); }

// --- Calls that belong to a phase.

void FluidService::TakeSend(Call call) {
  const VariableMessage& message = call.message;
  if (message.varname == protocol::kFluidComplete) return TakeComplete(std::move(call));
  if (message.varname == protocol::kBatchBarrier) return TakeBarrier(std::move(call), FluidPhase::kSend);
  if (const auto gradient = gradients_.find(message.varname); gradient != gradients_.end())
    return TakeGradient(std::move(call), gradient->second);
  const auto param = params_.find(message.varname);
  if (param != params_.end() && served_.role.params[static_cast<std::size_t>(param->second)].start)
    return TakeFirstValue(std::move(call), param->second);
  const std::string name = message.varname;
  Refuse(std::move(call), Unserved(name, "takes no variable"));
}

// A gradient is stored in either phase but answered only in SEND, so a trainer that is ahead waits for the
// others.
void FluidService::TakeGradient(Call call, const Gradient& of) {
  if (!call.stored) {
    const roles::ServedParam& served = served_.role.params[static_cast<std::size_t>(of.param)];
    protocol::ContractPiece piece = served.param;
    if (served.by_id) piece.shape = piece.shape.WithRows(kUnknownDim);  // accepts any height
    if (const Status fits = CheckTensor(call.message, piece, served.rows); !fits.ok())
      return Refuse(std::move(call), fits);
    if (const Status here = CheckHere(of.trainer); !here.ok()) return Refuse(std::move(call), here);
    Know(call.caller, of.trainer);
    Greet(of.trainer);
    Trainer& trainer = At(of.trainer);
    const std::uint32_t variable = trainer.said->PushedFor(of.param);
    if (trainer.pushed.insert(variable).second) {  // otherwise it is a repeat
      Push(of.trainer, variable, of.param, phases_.step(), *call.message.tensor);
    }
    call.message.tensor.reset();
    call.stored = true;
  }
  if (phases_.now() != FluidPhase::kSend) return Hold(std::move(call));
  Answer(std::move(call), UnaryReply(Payload()));
}

// The initial value of a held parameter, which trainer 0 sends once. It is answered in any phase, because
// training begins with it.
void FluidService::TakeFirstValue(Call call, int param) {
  const protocol::ContractPiece& piece = served_.role.params[static_cast<std::size_t>(param)].param;
  if (const Status fits = CheckTensor(call.message, piece, /*rows=*/false); !fits.ok())
    return Refuse(std::move(call), fits);
  if (const Status here = CheckHere(0); !here.ok()) return Refuse(std::move(call), here);
  Know(call.caller, 0);
  Greet(0);
  Push(0, At(0).said->VariableOf(param), param, 0, *call.message.tensor);
  Answer(std::move(call), UnaryReply(Payload()));
}

void FluidService::TakeGet(Call call) {
  if (call.message.varname == protocol::kFetchBarrier) return TakeBarrier(std::move(call), FluidPhase::kGet);
  if (phases_.now() != FluidPhase::kGet) return Hold(std::move(call));
  const std::string name = call.message.varname;
  TakeFetch(std::move(call), name);
}

void FluidService::TakeBarrier(Call call, FluidPhase phase) {
  if (phases_.now() != phase) return Hold(std::move(call));
  const std::string who = Who(call.caller);
  Answer(std::move(call), phase == FluidPhase::kGet ? UnaryReply() : UnaryReply(Payload()));
  if (phases_.Barrier(who)) EnterPhase();
}

void FluidService::TakeComplete(Call call) {
  const Result<int> trainer = Identify(call);
  if (!trainer.ok()) return Refuse(std::move(call), trainer.status());
  const std::string who = Who(call.caller);
  Answer(std::move(call), UnaryReply(Payload()));
  if (std::exchange(At(*trainer).completed, true)) return;
  Greet(*trainer);
  if (async()) EndOpenStep(*trainer);
  Post(*trainer, protocol::Complete{});
  if (phases_.Complete(who) && !async()) EnterPhase();
}

// The phase has just changed.
void FluidService::EnterPhase() {
  if (phases_.now() == FluidPhase::kGet) {
    for (std::size_t t = 0; t < trainers_.size(); ++t) {
      if (!trainers_[t].completed) EndStep(static_cast<int>(t), phases_.step() - 1);
    }
  }
  for (Call& call : std::exchange(held_, {})) Take(std::move(call));
}

// Fluid sends no message for a sparse gradient without rows; an empty push stands for it.
void FluidService::EndStep(int trainer, std::uint64_t step) {
  Greet(trainer);
  Trainer& ends = At(trainer);
  for (std::size_t p = 0; p < served_.role.params.size(); ++p) {
    const roles::ServedParam& served = served_.role.params[p];
    if (!served.rows || served.start) continue;
    const std::uint32_t variable = ends.said->PushedFor(static_cast<int>(p));
    if (ends.pushed.insert(variable).second) {
      Post(trainer, protocol::Push{.at = {variable, 0}, .step = step, .part = 0, .rows = 0, .bytes = {}});
    }
  }
  Post(trainer, protocol::EndStep{.step = step, .variables = {ends.pushed.begin(), ends.pushed.end()}});
  ends.pushed.clear();
}

// --- Calls of any phase.

void FluidService::TakeGetNow(Call call) {
  std::string name = call.message.varname;
  const std::string_view suffix = protocol::kWithoutBarrier;
  if (EndsWith(name, suffix)) name.resize(name.size() - suffix.size());
  TakeFetch(std::move(call), name);
}

// Requests the version of this step, which includes all gradients of earlier steps.
void FluidService::TakeFetch(Call call, const std::string& name) {
  const Result<int> trainer = Identify(call);
  if (!trainer.ok()) return Refuse(std::move(call), trainer.status());
  if (const Status here = CheckHere(*trainer); !here.ok()) return Refuse(std::move(call), here);
  const auto found = params_.find(name);
  if (found == params_.end() || served_.role.params[static_cast<std::size_t>(found->second)].by_id)
    return Refuse(std::move(call), Unserved(name, "holds no variable"));
  const int param = found->second;
  if (served_.role.params[static_cast<std::size_t>(param)].rows) {
    GreetFor(*trainer, name, /*whole=*/true);
  } else {
    Greet(*trainer);
  }
  Fetch& fetch = fetches_[{*trainer, param, StepOf(*trainer)}];
  fetch.calls.push_back(std::move(call));
  if (fetch.calls.size() > 1) return;  // it is requested already
  const std::size_t chunks = ChunkCount(param);
  fetch.chunks.resize(chunks);
  fetch.missing = chunks;
  for (std::size_t c = 0; c < chunks; ++c) {
    Post(*trainer, protocol::Pull{.at = {At(*trainer).said->VariableOf(param), static_cast<std::uint32_t>(c)},
                                  .version = StepOf(*trainer)});
  }
}

void FluidService::TakeLookup(Call call) {
  const int trainer = TrainerOf(call.caller);
  if (const Status here = CheckHere(trainer); !here.ok()) return Refuse(std::move(call), here);
  const VariableMessage& message = call.message;
  const std::string& name = message.table_name.empty() ? message.varname : message.table_name;
  GreetFor(trainer, name, /*whole=*/false);
  const TrainerTerms& terms = *At(trainer).said;
  const int variable = terms.contract().FindTable(name);
  if (variable < 0) return Refuse(std::move(call), Unserved(name, "holds no table"));
  const int param = *terms.ParamOfTable(static_cast<std::uint32_t>(variable));
  if (!message.tensor || message.tensor->dtype != DType::kInt64 || message.tensor->rows) {
    return Refuse(std::move(call),
                  InvalidArgument("E-wire-variable", message.varname, ": the ids of rows must be int64"));
  }
  const Payload ids = message.tensor->values;
  const auto count = static_cast<Dim>(ids.size() / sizeof(std::int64_t));
  if (count == 0) {
    const protocol::ContractPiece& piece = served_.role.params[static_cast<std::size_t>(param)].param;
    return AnswerTensor(std::move(call), piece.dtype, piece.shape.WithRows(0), {});
  }
  const std::uint32_t request = ++At(trainer).requests;
  lookups_.emplace(std::pair(trainer, request),
                   Lookup{.call = std::move(call), .param = param, .count = count});
  Post(trainer, protocol::PullRows{.at = {static_cast<std::uint32_t>(variable), 0},
                                   .version = StepOf(trainer),
                                   .request = request,
                                   .ids = ids});
}

// The call names a file but no table, so the server must hold exactly one.
void FluidService::TakeSave(Call call) {
  std::vector<std::string> tables;
  for (const roles::ServedParam& served : served_.role.params) {
    if (served.by_id) tables.push_back(served.param.name);
  }
  if (call.message.varname != protocol::kSaveNotify || tables.size() != 1) {
    const std::string name = call.message.varname;
    return Refuse(std::move(call), InvalidArgument("E-wire-save", name, ": this server holds ", tables.size(),
                                                   " tables sharded by id, and can save one"));
  }
  if (const Status here = CheckHere(0); !here.ok()) return Refuse(std::move(call), here);
  Greet(0);
  const std::uint32_t request = ++At(0).requests;
  const std::string file = call.message.out_varname;
  saves_.emplace(request, std::move(call));
  Post(0,
       protocol::Save{.version = StepOf(0), .request = request, .body = {.table = tables[0], .file = file}});
}

// --- Identifies callers and checks values.

// The trainer that the call names. It is remembered for calls of the same connection that name none.
Result<int> FluidService::Identify(const Call& call) {
  const std::int64_t id = call.message.trainer_id;
  if (id < 0 || id >= served_.role.trainers) {
    return InvalidArgument("E-plan-trainer-id", "plan: trainer_id ", id, " is out of range; pserver ",
                           served_.role.address, " is made for ", served_.role.trainers,
                           served_.role.trainers == 1 ? " trainer" : " trainers");
  }
  Know(call.caller, static_cast<int>(id));
  return static_cast<int>(id);
}

Status FluidService::CheckHere(int trainer) const {
  if (!trainers_[static_cast<std::size_t>(trainer)].completed) return OkStatus();
  return FailedPrecondition("E-wire-completed", "trainer ", trainer, " has completed, and calls pserver ",
                            served_.role.address, " again");
}

// The trainer of a connection. A new connection is unknown until a call names its trainer; until then this
// assumes the first trainer that has come and not completed.
int FluidService::TrainerOf(const std::string& caller) const {
  if (const auto known = trainer_at_.find(caller); known != trainer_at_.end()) return known->second;
  const auto here = std::find_if(trainers_.begin(), trainers_.end(),
                                 [](const Trainer& t) { return t.said != nullptr && !t.completed; });
  return here == trainers_.end() ? 0 : static_cast<int>(here - trainers_.begin());
}

// The trainer that probably sent the call, even if the call cannot be served.
int FluidService::LikelyTrainerOf(const Call& call) const {
  const std::int64_t id = call.message.trainer_id;
  return id > 0 && id < served_.role.trainers ? static_cast<int>(id) : TrainerOf(call.caller);
}

std::string FluidService::Who(const std::string& caller) const {
  const auto known = trainer_at_.find(caller);
  return known == trainer_at_.end() ? caller : StrCat("trainer ", known->second);
}

Status FluidService::Unserved(const std::string& name, std::string_view what) const {
  return InvalidArgument("E-wire-variable", "pserver ", served_.role.address, " ", what, " ", Quote(name));
}

Status FluidService::CheckTensor(const VariableMessage& message, const protocol::ContractPiece& piece,
                                 bool rows) const {
  if (!message.tensor) return InvalidArgument("E-wire-variable", message.varname, " comes without a value");
  const protocol::FluidTensor& tensor = *message.tensor;
  const Shape whole = rows && tensor.rows && tensor.shape.rank() > 0
                          ? tensor.shape.WithRows(tensor.rows->height)
                          : tensor.shape;
  if (tensor.rows.has_value() == rows && tensor.dtype == piece.dtype && Compatible(whole, piece.shape))
    return OkStatus();
  const protocol::ContractPiece sent{message.varname, tensor.dtype, whole, tensor.rows.has_value()};
  const protocol::ContractPiece served{message.varname, piece.dtype, piece.shape, rows};
  return InvalidArgument("E-wire-variable", "a trainer sends ", sent.ToString(), "; pserver ",
                         served_.role.address, " takes ", served.ToString());
}

void FluidService::Greet(int trainer) {
  if (At(trainer).said == nullptr) SayHello(trainer);
}

// Greets a trainer that fetches a table whole, or requests rows of it. A later hello changes how the trainer
// numbers its variables.
void FluidService::GreetFor(int trainer, const std::string& table, bool whole) {
  protocol::RowUses& uses = At(trainer).uses;
  const bool changes = whole ? uses.whole.insert(table).second : uses.whole.erase(table) > 0;
  if (changes || At(trainer).said == nullptr) SayHello(trainer);
}

// Posts the hello that Fluid's trainers do not send.
void FluidService::SayHello(int trainer) {
  Trainer& greeted = At(trainer);
  if (greeted.caller == nullptr) greeted.caller = std::make_shared<TrainerCaller>(weak_from_this(), trainer);
  TrainerTerms made(served_.role, trainer, greeted.uses);
  const std::uint64_t hash = made.hash();
  const TrainerTerms& terms = greeted.terms.try_emplace(hash, std::move(made)).first->second;
  greeted.said = &terms;
  const roles::PserverFacts& role = served_.role;
  Post(trainer, protocol::Hello{.step = StepOf(trainer),
                                .body = {.job = job_,
                                         .trainers = static_cast<std::uint32_t>(role.trainers),
                                         .contract = terms.contract().ToText(),
                                         .job_facts = role.job_facts}});
}

// The terms whose numbers of variables a reply uses.
const TrainerTerms& FluidService::Named(int trainer, const protocol::Sender& to) const {
  const Trainer& greeted = trainers_[static_cast<std::size_t>(trainer)];
  const auto found = greeted.terms.find(to.contract);
  return found == greeted.terms.end() ? *greeted.said : found->second;
}

std::size_t FluidService::ChunkCount(int param) const {
  const roles::ServedParam& served = served_.role.params[static_cast<std::size_t>(param)];
  const Dim rows = served.param.shape.rank() == 0 ? 1 : served.param.shape[0];
  const Dim chunk = served_.chunk_rows[static_cast<std::size_t>(param)];
  return static_cast<std::size_t>((rows + chunk - 1) / chunk);
}

void FluidService::Push(int trainer, std::uint32_t variable, int param, std::uint64_t step,
                        const protocol::FluidTensor& value) {
  protocol::Push push{.at = {variable, 0}, .step = step, .part = 0, .bytes = {}};
  if (value.rows) {
    push.bytes = value.rows->numbers;
    push.bytes.Append(value.values);
    push.rows = static_cast<std::uint64_t>(value.shape[0]);
    return Post(trainer, std::move(push));
  }
  const Dim rows = served_.chunk_rows[static_cast<std::size_t>(param)];
  const std::size_t bytes = static_cast<std::size_t>(rows * value.shape.RowWidth()) * SizeOf(value.dtype);
  for (std::size_t begin = 0; begin < value.values.size(); begin += bytes) {
    push.bytes = value.values.Part(begin, std::min(bytes, value.values.size() - begin));
    Post(trainer, push);
    ++push.at.chunk;
  }
}

void FluidService::Post(int trainer, protocol::Event event) {
  const Trainer& from = At(trainer);
  const protocol::Sender sender{.job = Fnv1a64(job_),
                                .contract = from.said->hash(),
                                .incarnation = 1,
                                .trainer = static_cast<std::uint32_t>(trainer)};
  events_.emplace_back([this, caller = from.caller, sender, event = std::move(event)] {
    handler_.OnEvent(caller, sender, event);
  });
}

}  // namespace penstock::pserver
