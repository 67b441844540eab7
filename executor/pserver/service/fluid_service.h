// A parameter server on Fluid's wire: turns calls of `sendrecv.SendRecvService` into events of a handler, and
// replies into their answers. Serves trainers of Fluid 1.8.5, and ours with wire = fluid.
//
//   auto service = std::make_shared<FluidService>(*pserver, served, "my job");
//   auto listener = transport::ListenUnary(address, *service, FluidService::Calls());
//
// Fluid has no hello, no steps and no versions: a trainer is known from its first call, and the meaning of a
// call follows from the phase (fluid_phases.h). Asynchronous jobs have no phases; a trainer's step ends with
// its first GetVariable or PrefetchVariable after a gradient, when a gradient or step count of the step
// comes again, or with its completion. A call that cannot be served is answered with INTERNAL and our error.
// Barriers and lookups do not carry the trainer's id; it is derived from the connection where possible.
//
// Delivery is not exactly-once on this wire: messages carry no step, so only the phase tells a repeated
// message from a new one.
//
// Thread-safe. Events are passed on one at a time, in the order of the calls.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/protocol/fluid_message.h"
#include "executor/pserver/machine/admission.h"
#include "executor/pserver/service/fluid_phases.h"
#include "executor/pserver/service/service.h"
#include "executor/pserver/service/wire.h"
#include "executor/transport/unary.h"

namespace penstock::pserver {

class FluidService : public transport::UnaryHandler, public std::enable_shared_from_this<FluidService> {
 public:
  // A chunk travels in one part: the handler's part_bytes must be kPartBytes.
  static constexpr std::size_t kPartBytes = (std::size_t{1} << 31) - 1;

  static transport::UnaryServerOptions Calls();

  FluidService(EventHandler& handler, Served served, std::string job);

  void OnCall(const std::string& caller, const std::string& method, Payload request,
              transport::UnaryDone done) override;

 private:
  struct Call {
    std::string caller;  // the connection
    std::string method;
    protocol::VariableMessage message;
    transport::UnaryDone done;
    bool stored = false;  // a gradient whose value was accepted
  };
  struct Waiting {  // a gradient of an asynchronous trainer
    Call call;
    std::uint64_t step = 0;
  };
  struct Trainer {
    std::shared_ptr<Caller> caller;
    protocol::RowUses uses;                       // the tables that it has fetched whole
    std::map<std::uint64_t, TrainerTerms> terms;  // those of its hellos, by hash
    const TrainerTerms* said = nullptr;           // the terms of its last hello; null: it has not come yet
    std::set<std::uint32_t> pushed;               // variables, in the open step
    std::uint32_t requests = 0;
    bool completed = false;
    bool left = false;  // the handler was told that it left
    // Of an asynchronous trainer. Gradients wait until they are welcome, by param; so do their calls.
    std::uint64_t step = 0;
    bool counted = false;  // the open step was reported to the learning-rate schedule
    std::map<int, std::deque<Waiting>> waiting;
    std::map<int, std::vector<std::uint64_t>> welcome_below;  // by param and chunk
  };
  struct Gradient {
    int trainer = 0, param = 0;
  };
  // A parameter being fetched for the calls that request one version of it.
  struct Fetch {
    std::vector<Call> calls;
    std::vector<Payload> chunks;
    std::size_t missing = 0;
  };
  using FetchKey = std::tuple<int, int, std::uint64_t>;  // trainer, param, version
  struct Lookup {
    Call call;
    int param = 0;
    Dim count = 0;  // of ids
  };
  class TrainerCaller;

  // Called with the lock held, except OnReply, OnCallerClosed, FlushLater and Flush.

  void Take(Call call);
  void Hold(Call call);
  void TakeSend(Call call);
  void TakeGradient(Call call, const Gradient& of);
  void TakeFirstValue(Call call, int param);
  void TakeGet(Call call);
  void TakeBarrier(Call call, FluidPhase phase);
  void TakeComplete(Call call);
  void EnterPhase();
  void EndStep(int trainer, std::uint64_t step);
  void TakeGetNow(Call call);
  void TakeFetch(Call call, const std::string& name);
  void TakeLookup(Call call);
  void TakeSave(Call call);

  // For asynchronous jobs (fluid_service_async.cc).
  void TakeUnphased(Call call);
  void TakeGradientNow(Call call, int param);
  void TakeCount(Call call);
  void EndOpenStep(int trainer);
  // The first chunk of the param for which the step's gradient is not welcome yet.
  std::optional<std::uint32_t> Unwelcome(int trainer, int param, std::uint64_t step) const;
  void AskForCredit(int trainer, int param);
  void SendWelcome(int trainer, int param);
  void TakeCredit(int trainer, const protocol::Sender& to, const protocol::ChunkRef& at, std::uint64_t below);

  bool async() const { return served_.role.mode != roles::ServeMode::kSync; }
  // The step of gradients that come now, and the version of what is requested.
  std::uint64_t StepOf(int trainer) const {
    return async() ? trainers_[static_cast<std::size_t>(trainer)].step : phases_.step();
  }
  Trainer& At(int trainer) { return trainers_[static_cast<std::size_t>(trainer)]; }
  Result<int> Identify(const Call& call);
  void Know(const std::string& caller, int trainer) { trainer_at_[caller] = trainer; }
  Status CheckHere(int trainer) const;
  int TrainerOf(const std::string& caller) const;
  int LikelyTrainerOf(const Call& call) const;
  std::string Who(const std::string& caller) const;
  Status Unserved(const std::string& name, std::string_view what) const;
  Status CheckTensor(const protocol::VariableMessage& message, const protocol::ContractPiece& piece,
                     bool rows) const;
  void Greet(int trainer);
  void GreetFor(int trainer, const std::string& table, bool whole);
  void SayHello(int trainer);
  const TrainerTerms& Named(int trainer, const protocol::Sender& to) const;
  std::size_t ChunkCount(int param) const;
  void Push(int trainer, std::uint32_t variable, int param, std::uint64_t step,
            const protocol::FluidTensor& value);
  void Post(int trainer, protocol::Event event);

  void OnReply(int trainer, const protocol::Sender& to, protocol::Reply reply);
  void OnCallerClosed(int trainer);
  void TakeChunk(int trainer, const protocol::Sender& to, const protocol::ChunkRef& at, std::uint64_t version,
                 const Payload& bytes);
  void On(int trainer, const protocol::Rows& rows);
  void FailFetch(int trainer, const protocol::Sender& to, const protocol::Gone& gone);
  FetchKey KeyOf(int trainer, const protocol::Sender& to, std::uint32_t variable,
                 std::uint64_t version) const;
  Status Overwritten(const std::string& name, std::uint64_t version) const;
  void Leave(int trainer);
  void FailAll(const Status& why);

  void Answer(Call call, Result<transport::UnaryReply> reply);
  void Refuse(Call call, const Status& why);
  void Fail(Call call, const Status& why);
  void AnswerTensor(Call call, DType dtype, const Shape& shape, Payload values);
  void FlushLater();
  void Flush();

  EventHandler& handler_;
  const Served served_;
  const std::string job_;
  std::map<std::string, Gradient, std::less<>> gradients_;
  std::map<std::string, int, std::less<>> params_;  // by name

  std::mutex mutex_;
  FluidPhases phases_;
  std::vector<Trainer> trainers_;
  std::map<std::string, int> trainer_at_;  // by connection, once a call has named it
  std::vector<Call> held_;                 // until the other phase
  std::map<FetchKey, Fetch> fetches_;
  std::map<std::pair<int, std::uint32_t>, Lookup> lookups_;  // by trainer and request
  std::map<std::uint32_t, Call> saves_;
  std::optional<Status> failed_;
  std::deque<std::function<void()>> events_;  // to be passed on
  bool handing_on_ = false;
  std::vector<std::pair<transport::UnaryDone, Result<transport::UnaryReply>>> answers_;
};

}  // namespace penstock::pserver
