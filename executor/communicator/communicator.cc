#include "executor/communicator/communicator.h"

#include <algorithm>
#include <set>
#include <utility>

#include "executor/communicator/geo_mode.h"
#include "executor/communicator/step_mode.h"
#include "framework/roles/trainer_facts.h"

namespace penstock::communicator {
namespace {

// Identifies a declared variable with its pieces.
std::string KeyOf(const WholeVariable& whole) {
  std::string key = whole.name;
  for (const WholeVariable::Piece& piece : whole.pieces)
    key += StrCat("\n", piece.end, " ", piece.remote.pserver, " ", piece.remote.name);
  return key;
}

constexpr const char* NameOf(ModeName mode) {
  switch (mode) {
    case ModeName::kSync:
      return "SYNC";
    case ModeName::kAsync:
      return "ASYNC";
    case ModeName::kHalfAsync:
      return "HALF_ASYNC";
    case ModeName::kGeo:
      return "GEO";
  }
  return "";
}

// Whether the program reports its steps to a communicator, as a program of geo-SGD does.
bool TellsSteps(const Program& program) {
  const auto& ops = program.main().ops();
  return std::any_of(ops.begin(), ops.end(), [](const OpEntry& entry) {
    if (roles::CommOf(*entry.op) != roles::Comm::kSend) return false;
    const roles::SendView send(*entry.op);
    return send.tells_communicator() && !send.tells_start();
  });
}

// The servers of all pieces that go through a communicator in mode ASYNC, each once: besides those of whole
// variables, what other ops send (TrainerCommunicator::ends_steps).
std::vector<std::string> ServersOf(const roles::TrainerFacts& role) {
  std::set<std::string> addresses;
  for (const roles::CommOp& one : role.ops) {
    if (!one.by_communicator && one.kind != roles::CommOp::Kind::kSend) continue;
    for (const roles::Piece& piece : one.pieces) addresses.emplace(piece.pserver);
  }
  return {addresses.begin(), addresses.end()};
}

// The variables of a geo-SGD trainer that last from one step to the next, and are not exchanged.
std::vector<std::string> OwnVariables(const Program& program, const GeoSettings& geo) {
  std::vector<std::string> own;
  for (const auto& var : program.main().vars()) {
    if (var->persistable && var->kind == VarKind::kTensor &&
        std::ranges::find(geo.variables, var->name, &GeoVariable::name) == geo.variables.end())
      own.push_back(var->name);
  }
  return own;
}

}  // namespace

Status CheckProgram(const Program& program, const Settings& settings) {
  if (settings.mode == ModeName::kGeo) {
    if (TellsSteps(program)) return ExchangeProgram(program, settings.geo).status();
    return InvalidArgument("E-communicator-program",
                           "the program tells no communicator of its steps; transpile ",
                           "it with GeoSgdTranspiler, and give the trainer's program");
  }
  const roles::TrainerFacts role = roles::ReadTrainer(program);
  if (!role.by_communicator) {
    return InvalidArgument("E-communicator-program",
                           "no gradient of the program goes through a communicator; ",
                           "transpile with runtime_split_send_recv, and give the trainer's program");
  }
  const bool ends = std::any_of(role.ops.begin(), role.ops.end(), [](const roles::CommOp& one) {
    return one.kind == roles::CommOp::Kind::kSendBarrier && roles::BarrierView(*one.op).half_async();
  });
  if (ends != (settings.mode == ModeName::kAsync)) return OkStatus();
  if (ends) {
    return InvalidArgument(
        "E-communicator-steps", "a communicator in mode ASYNC ends steps by itself, but the ",
        "program has a send_barrier; use mode HALF_ASYNC, or SYNC with completely_not_async");
  }
  return InvalidArgument("E-communicator-steps", "a communicator in mode ", NameOf(settings.mode),
                         " needs a send_barrier in the program; transpile with half_async or ",
                         "completely_not_async");
}

Status Communicator::Start(const Program& program, const Settings& settings) {
  PENSTOCK_RETURN_IF_ERROR(CheckProgram(program, settings));
  const std::lock_guard lock(mutex_);
  if (mode_ != nullptr) {
    return FailedPrecondition("E-communicator-running",
                              "this process's communicator is running already; stop it first");
  }
  if (settings.mode == ModeName::kAsync) {
    const roles::TrainerFacts role = roles::ReadTrainer(program);
    mode_ = MakeAsyncMode(rpc_, settings.async, ServersOf(role), role.trainer_id.value_or(0));
  } else if (settings.mode == ModeName::kGeo) {
    PENSTOCK_ASSIGN_OR_RETURN(exchange_, ExchangeProgram(program, settings.geo));
    mode_ = MakeGeoMode(rpc_, settings.geo, *exchange_,
                        {.parts = settings.parts, .own = OwnVariables(program, settings.geo)});
  } else {
    mode_ = MakeStepMode(rpc_);
  }
  return OkStatus();
}

bool Communicator::AwaitsBegin(const Program& program) const {
  const std::lock_guard lock(mutex_);
  return mode_ != nullptr && !mode_->has_begun() && TellsSteps(program);
}

Status Communicator::Begin(std::shared_ptr<Scope> scope) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Mode> mode = mode_;
  lock.unlock();
  if (mode == nullptr) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(rpc_.CompleteLeft());  // it reads what the startup program has received
  return mode->Begin(std::move(scope));
}

Program Communicator::WiringOf(const Program& program) const {
  const std::lock_guard lock(mutex_);
  return exchange_ && TellsSteps(program) ? *exchange_ : program;
}

Status Communicator::Stop() {
  std::shared_ptr<Mode> mode;
  {
    const std::lock_guard lock(mutex_);
    mode = std::exchange(mode_, nullptr);
    exchange_.reset();
  }
  return mode == nullptr ? OkStatus() : mode->Stop();
}

Status Communicator::Flush() {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Mode> mode = mode_;
  lock.unlock();
  return mode == nullptr ? OkStatus() : mode->Flush();
}

bool Communicator::running() const {
  const std::lock_guard lock(mutex_);
  return mode_ != nullptr;
}

Result<GradientHandle> Communicator::DeclareGradient(const WholeVariable& gradient) {
  const std::lock_guard lock(mutex_);
  const std::string key = KeyOf(gradient);
  const auto known = gradient_at_.find(key);
  if (known != gradient_at_.end()) return GradientHandle{known->second};
  Gradient made{.whole = gradient, .pieces = {}};
  for (const WholeVariable::Piece& piece : gradient.pieces) {
    PENSTOCK_ASSIGN_OR_RETURN(const PushHandle handle, rpc_.DeclarePush(piece.remote));
    made.pieces.push_back(handle);
  }
  const int position = gradient_at_[key] = static_cast<int>(gradients_.size());
  gradients_.push_back(std::move(made));
  return GradientHandle{position};
}

Result<ParamHandle> Communicator::DeclareParam(const WholeVariable& param) {
  const std::lock_guard lock(mutex_);
  const std::string key = KeyOf(param);
  const auto known = param_at_.find(key);
  if (known != param_at_.end()) return ParamHandle{known->second};
  Param made{.whole = param, .pieces = {}};
  for (const WholeVariable::Piece& piece : param.pieces) {
    PENSTOCK_ASSIGN_OR_RETURN(const PullHandle handle, rpc_.DeclarePull(piece.remote));
    made.pieces.push_back(handle);
  }
  const int position = param_at_[key] = static_cast<int>(params_.size());
  params_.push_back(std::move(made));
  return ParamHandle{position};
}

Result<TableHandle> Communicator::DeclareTable(const std::string& table) {
  const std::lock_guard lock(mutex_);
  const auto [known, added] = table_at_.try_emplace(table, static_cast<int>(tables_.size()));
  if (added) tables_.push_back({.name = table, .index = tables_.size()});
  return TableHandle{known->second};
}

Result<std::shared_ptr<Mode>> Communicator::Running(std::string_view op, std::string_view name) const {
  if (mode_ != nullptr) return mode_;
  return FailedPrecondition(
      "E-communicator-missing", op, ": ", name, " goes through the trainer's communicator, ",
      "which is not running; call fluid.communicator.Communicator(program, mode).start() ",
      "before the first step");
}

Status Communicator::Send(GradientHandle gradient, const Variable& value, const Tensor& residual) {
  std::unique_lock lock(mutex_);
  Gradient& sent = gradients_[static_cast<std::size_t>(gradient.index)];
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Mode> mode, Running("send", sent.whole.name));
  lock.unlock();
  return mode->Send(sent, value, residual);
}

Status Communicator::EndStep(PeersHandle pservers) {
  std::unique_lock lock(mutex_);
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Mode> mode, Running("send_barrier", "the end of a step"));
  lock.unlock();
  return mode->EndStep(pservers);
}

Status Communicator::CountStep(PeersHandle pservers) {
  std::unique_lock lock(mutex_);
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Mode> mode, Running("send", "the count of steps"));
  lock.unlock();
  return mode->CountStep(pservers);
}

Status Communicator::BeginRun(Scope& scope) {
  std::shared_ptr<Mode> mode;
  {
    const std::lock_guard lock(mutex_);
    mode = mode_;
  }
  return mode == nullptr ? OkStatus() : mode->BeginRun(scope);
}

Status Communicator::Land(ParamHandle param, Variable& out) {
  std::unique_lock lock(mutex_);
  Param& landed = params_[static_cast<std::size_t>(param.index)];
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Mode> mode, Running("recv", landed.whole.name));
  lock.unlock();
  return mode->Land(landed, out.As<Tensor>());
}

Status Communicator::Touch(TableHandle table, std::span<const std::int64_t> ids) {
  std::unique_lock lock(mutex_);
  const Table& touched = tables_[static_cast<std::size_t>(table.index)];
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Mode> mode, Running("send", touched.name));
  lock.unlock();
  return mode->Touch(touched, ids);
}

Status Communicator::EndLocalStep(const Scope& scope) {
  std::unique_lock lock(mutex_);
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Mode> mode, Running("send", "what a step changes"));
  lock.unlock();
  return mode->EndLocalStep(scope);
}

bool Communicator::ends_steps() const {
  const std::lock_guard lock(mutex_);
  return mode_ != nullptr && mode_->ends_steps();
}

}  // namespace penstock::communicator
