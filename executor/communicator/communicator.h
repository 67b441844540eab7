// The communicator of a trainer process: what stands between the `send` and `recv` ops of a program that was
// transpiled with runtime_split_send_recv and the parameter servers. There is one for a process; a mode
// decides what it does, from Start to Stop.
//
//   Communicator communicator(rpc);
//   PENSTOCK_RETURN_IF_ERROR(communicator.Start(trainer_program, {.mode = ModeName::kSync}));
//   ... steps of the program, whose kernels call Send, EndStep and Land ...
//   PENSTOCK_RETURN_IF_ERROR(communicator.Stop());
//
// Start, Stop and running may be called from any thread, the rest as TrainerCommunicator says.
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
#include "framework/ir/program.h"

namespace penstock::communicator {

enum class ModeName { kSync, kAsync, kHalfAsync, kGeo };  // numbered as Fluid's DistributedMode

struct Settings {
  ModeName mode = ModeName::kSync;
  AsyncSettings async = {};
  GeoSettings geo = {};
};

// Whether the program's sends and barriers are those of the mode. kInvalidArgument: E-communicator-program
// (no gradient of the program goes through a communicator, or it is none of geo-SGD), E-communicator-steps
// (its steps end otherwise); of mode GEO also what ExchangeProgram says.
Status CheckProgram(const Program& program, const Settings& settings);

class Communicator : public TrainerCommunicator {
 public:
  explicit Communicator(RpcClient& rpc) : rpc_(rpc) {}  // which outlives it

  // What CheckProgram says, and kFailedPrecondition E-communicator-running: it was started and not stopped.
  Status Start(const Program& program, const Settings& settings);
  Status Stop() override;
  bool running() const;

  // Of mode GEO. A step of `program` is to run in `scope`, and is the first: then Begin comes before it.
  bool AwaitsBegin(const Program& program) const;
  // Parameters are those of `scope`, which is kept until Stop, as they are now.
  Status Begin(std::shared_ptr<Scope> scope);
  // What says where `program`'s parameters lie: itself, or, of a program of geo-SGD, what is exchanged.
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

 private:
  // The mode while it runs; a call that is under way keeps it.
  Result<std::shared_ptr<Mode>> Running(std::string_view op, std::string_view name) const;

  RpcClient& rpc_;
  mutable std::mutex mutex_;  // of what follows, but not of what is inside the mode
  std::shared_ptr<Mode> mode_;
  std::deque<Gradient> gradients_;  // a handle is a position; they stay where they are
  std::deque<Param> params_;
  std::deque<Table> tables_;
  std::map<std::string, int> gradient_at_, param_at_, table_at_;
  std::optional<Program> exchange_;  // of mode GEO
};

}  // namespace penstock::communicator
