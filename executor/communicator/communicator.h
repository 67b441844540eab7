// The communicator of a trainer process. It connects the `send` and `recv` ops of a program transpiled with
// runtime_split_send_recv to the parameter servers. A process has one; from Start to Stop, a mode decides
// what it does.
//
//   Communicator communicator(rpc);
//   PENSTOCK_RETURN_IF_ERROR(communicator.Start(trainer_program, {.mode = ModeName::kSync}));
//   ... steps of the program, whose kernels call Send, EndStep and Land ...
//   PENSTOCK_RETURN_IF_ERROR(communicator.Stop());
//
// Start, Stop and running may be called from any thread; for the others see TrainerCommunicator.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "executor/communicator/async_mode.h"
#include "executor/communicator/exchange_program.h"
#include "executor/communicator/mode.h"
#include "executor/communicator/trainer_parts.h"
#include "framework/ir/program.h"

namespace penstock::communicator {

enum class ModeName { kSync, kAsync, kHalfAsync, kGeo };  // numbered as Fluid's DistributedMode

struct Settings {
  ModeName mode = ModeName::kSync;
  AsyncSettings async = {};
  GeoSettings geo = {};
  PartOptions parts = {};  // of mode GEO
};

// Checks that the program's sends and barriers fit the mode. kInvalidArgument: E-communicator-program (no
// gradient of the program goes through a communicator, or it is not a geo-SGD program), E-communicator-steps
// (its steps end differently); for mode GEO also the errors of ExchangeProgram.
Status CheckProgram(const Program& program, const Settings& settings);

class Communicator : public TrainerCommunicator {
 public:
  explicit Communicator(RpcClient& rpc) : rpc_(rpc) {}  // the client outlives it

  // Errors of CheckProgram, and kFailedPrecondition E-communicator-running: it is running already.
  Status Start(const Program& program, const Settings& settings);
  Status Stop() override;
  // Sends what is queued, and returns when the servers have it; a pull after it contains it. No effect if the
  // communicator was not started.
  Status Flush();
  bool running() const;

  // Mode GEO: whether a step of `program` in `scope` would be the first, so Begin must come before it.
  bool AwaitsBegin(const Program& program) const;
  // Takes the parameters from `scope` in their current state; keeps the scope until Stop.
  Status Begin(std::shared_ptr<Scope> scope);
  // The program that shows on which servers `program`'s parameters are: itself or, for geo-SGD, the
  // exchange program.
  Program WiringOf(const Program& program) const;

  Result<GradientHandle> DeclareGradient(const WholeVariable& gradient) override;
  Result<ParamHandle> DeclareParam(const WholeVariable& param) override;
  Result<TableHandle> DeclareTable(const std::string& table) override;
  Status Send(GradientHandle gradient, const Variable& value, const Tensor& residual) override;
  Status EndStep(PeersHandle pservers) override;
  Status CountStep(PeersHandle pservers) override;
  Status Land(ParamHandle param, Variable& out) override;
  Status BeginRun(Scope& scope) override;
  Status Touch(TableHandle table, std::span<const std::int64_t> ids) override;
  Status EndLocalStep(const Scope& scope) override;
  bool ends_steps() const override;

 private:
  // The mode while the communicator runs; a call in progress keeps it alive.
  Result<std::shared_ptr<Mode>> Running(std::string_view op, std::string_view name) const;

  RpcClient& rpc_;
  mutable std::mutex mutex_;  // guards what follows, but not the state inside the mode
  std::shared_ptr<Mode> mode_;
  std::deque<Gradient> gradients_;  // a handle is a position; elements do not move
  std::deque<Param> params_;
  std::deque<Table> tables_;
  std::map<std::string, int> gradient_at_, param_at_, table_at_;
  std::optional<Program> exchange_;  // of mode GEO
};

}  // namespace penstock::communicator
