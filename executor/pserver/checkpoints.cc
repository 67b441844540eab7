#include "executor/pserver/checkpoints.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/text/job_facts.h"

namespace penstock::pserver {
namespace {

using checkpoint::Value;
using checkpoint::ValueEntry;
using checkpoint::ValueKind;

std::string TypeOf(const Tensor& tensor) { return StrCat(DTypeName(tensor.dtype()), tensor.shape()); }

Value ValueOf(std::string name, ValueKind kind, std::string of, const Tensor& tensor) {
  Value value{.entry = {.name = std::move(name),
                        .kind = kind,
                        .of = std::move(of),
                        .row_begin = {},
                        .type = TypeOf(tensor)},
              .value = {}};
  value.value.As<Tensor>() = tensor;
  return value;
}

Value RowsOf(std::string name, ValueKind kind, const std::string& of, SelectedRows rows) {
  Value value = ValueOf(std::move(name), kind, of, rows.value);
  value.entry.rows = true;
  value.value.As<SelectedRows>() = std::move(rows);
  return value;
}

// What makes a checkpoint of one step impossible; empty: nothing.
std::string WhyNoStep(const roles::PserverFacts& facts, int backup_trainers) {
  if (facts.mode != roles::ServeMode::kSync || !facts.counters.empty())
    return "trainers that do not wait for each other have no common step";
  if (backup_trainers > 0) return "with backup trainers, servers may use different gradients for a step";
  if (ModeOfJob(facts.job_facts) == "hybrid") return "trainers keep the dense parameters themselves";
  return {};
}

Status Differs(const std::string& folder, const std::string& how) {
  return FailedPrecondition("E-checkpoint-differs", folder, " is a checkpoint of another job: ", how)
      .With("continue a job with the script and the number of pservers that made its checkpoint");
}

}  // namespace

Result<std::unique_ptr<Checkpoints>> Checkpoints::Make(Disk& disk, CheckpointOptions options,
                                                       const roles::PserverFacts& facts,
                                                       int backup_trainers) {
  if (const std::string why = WhyNoStep(facts, backup_trainers); !why.empty()) {
    return Unimplemented("E-checkpoint-mode", "pserver ", facts.address, " makes no checkpoints: ", why)
        .With("use synchronous training, or fluid.io.save_persistables");
  }
  const auto own = std::ranges::find(options.servers, facts.address);
  if (own == options.servers.end()) {
    return InvalidArgument("E-checkpoint-servers", "pserver ", facts.address,
                           " makes checkpoints, and is not among the job's pservers ",
                           Join(options.servers, ", "))
        .With("PADDLE_PSERVERS_IP_PORT_LIST lists them; the launcher sets it");
  }
  const auto server = static_cast<int>(own - options.servers.begin());
  std::unique_ptr<Checkpoints> made(new Checkpoints(disk, std::move(options), facts, server));
  PENSTOCK_RETURN_IF_ERROR(made->CheckFolder());
  return made;
}

Status Checkpoints::CheckFolder() {
  if (options_.resume) return server_ == 0 ? writer_.RemoveAfter(*options_.resume) : OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const auto found, checkpoint::FindCheckpoints(disk_, options_.folder));
  if (found.empty()) return OkStatus();
  return FailedPrecondition("E-checkpoint-exists", options_.folder,
                            " has checkpoints of an earlier job, the ", "last of step ", found.back().step)
      .With("continue that job by --resume, or give an empty folder");
}

Result<checkpoint::Found> Checkpoints::Find() const {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<checkpoint::Found> all,
                            checkpoint::FindCheckpoints(disk_, options_.folder));
  const auto found = std::ranges::find(all, *options_.resume, &checkpoint::Found::step);
  if (found != all.end() && found->whole()) return std::move(*found);
  return DataLoss("E-checkpoint-whole", options_.folder, " has no whole checkpoint of step ",
                  *options_.resume, found == all.end() ? "" : ": ", found == all.end() ? "" : found->lacks);
}

Result<std::set<std::string>> Checkpoints::Restore(Scope& scope) {
  std::set<std::string> restored;
  if (first_step() == 0) return restored;
  PENSTOCK_ASSIGN_OR_RETURN(const checkpoint::Found found, Find());
  if (found.parts.size() != options_.servers.size()) {
    return Differs(found.folder, StrCat("it was made by ", found.parts.size(), " pservers, this job has ",
                                        options_.servers.size()));
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::vector<Value> values,
      checkpoint::ReadPart(disk_, found.folder, found.parts[static_cast<std::size_t>(server_)]));
  const auto is_held = [&](const std::string& name) {
    return std::ranges::any_of(facts_.params, [&](const roles::ServedParam& served) {
      return served.start && served.param.name == name;
    });
  };
  for (const Value& value : values) {
    restored.insert(value.entry.name);
    if (is_held(value.entry.name)) {
      held_.push_back(value);
    } else {
      PENSTOCK_RETURN_IF_ERROR(RestoreOne(value, scope));
    }
  }
  for (const roles::ServedParam& served : facts_.params) {
    if (served.start || restored.contains(served.param.name)) continue;
    return Differs(found.folder,
                   StrCat("pserver ", server_, " has ", served.param.name, ", which its part lacks"));
  }
  return restored;
}

Status Checkpoints::RestoreHeld(Scope& scope) {
  for (const Value& value : std::exchange(held_, {})) PENSTOCK_RETURN_IF_ERROR(RestoreOne(value, scope));
  return OkStatus();
}

Status Checkpoints::RestoreOne(const Value& value, Scope& scope) const {
  const std::string& name = value.entry.name;
  const std::string folder = FolderOf(first_step());
  Variable* variable = scope.Find(name);
  if (variable == nullptr || !variable->initialized())
    return Differs(folder, StrCat("pserver ", server_, " has no ", name));
  if (const auto* rows = value.value.If<SelectedRows>()) {
    auto* there = variable->If<SelectedRows>();
    if (there == nullptr || there->value.dtype() != rows->value.dtype() ||
        there->value.shape().WithRows(0) != rows->value.shape().WithRows(0)) {
      return Differs(folder, StrCat("its ", name, " has rows of ", value.entry.type));
    }
    there->rows = rows->rows;
    there->value = rows->value;  // `start` gives the rows that are not listed
    return OkStatus();
  }
  const Tensor& saved = *value.value.If<Tensor>();
  auto* there = variable->If<Tensor>();
  if (there == nullptr || there->dtype() != saved.dtype() || there->shape() != saved.shape()) {
    return Differs(folder, StrCat("its ", name, " is ", value.entry.type, ", here it is ",
                                  there == nullptr ? std::string("no tensor") : TypeOf(*there)));
  }
  std::memcpy(there->raw(), saved.raw(), saved.bytes());
  return OkStatus();
}

std::shared_ptr<StateCopy> Checkpoints::CopyFor(int param, const ChunkStore& store) {
  std::shared_ptr<StateCopy>& copy = copies_[param];
  if (copy == nullptr) copy = store.BeginStateCopy(param);
  return copy;
}

std::vector<Value> Checkpoints::Take() {
  std::vector<Value> values;
  for (auto& [param, copy] : std::exchange(copies_, {})) {
    const roles::ServedParam& served = facts_.params[static_cast<std::size_t>(param)];
    const std::size_t constants = copy->tensors.size() - copy->constants;
    for (std::size_t i = 0; i < copy->tensors.size(); ++i) {
      const ValueKind kind = i == 0          ? ValueKind::kParam
                             : i < constants ? ValueKind::kState
                                             : ValueKind::kConstant;
      values.push_back(ValueOf(copy->tensors[i].first, kind, served.logical, copy->tensors[i].second));
    }
    values[values.size() - copy->tensors.size()].entry.row_begin = served.row_begin;
  }
  for (auto& [param, copy] : std::exchange(tables_, {})) {
    const roles::ServedParam& served = facts_.params[static_cast<std::size_t>(param)];
    const SelectedRows& rows = copy.rows;
    for (std::size_t i = copy.scalars; i < copy.state.size(); ++i) {
      SelectedRows state{.rows = rows.rows, .height = rows.height, .value = copy.state[i].second};
      values.push_back(RowsOf(copy.state[i].first, ValueKind::kState, served.logical, std::move(state)));
    }
    for (std::size_t i = 0; i < copy.scalars; ++i) {
      const bool state = i + copy.constants < copy.scalars;
      values.push_back(ValueOf(copy.state[i].first, state ? ValueKind::kState : ValueKind::kConstant,
                               served.logical, copy.state[i].second));
    }
    values.push_back(RowsOf(served.param.name, ValueKind::kParam, served.logical, std::move(copy.rows)));
  }
  for (auto& [name, tensor] : std::exchange(shared_, {}))
    values.push_back(ValueOf(name, ValueKind::kSchedule, {}, tensor));
  return values;
}

Status Checkpoints::Write(std::uint64_t step, const std::vector<Value>& values) {
  return writer_
      .Write({.step = step,
              .server = server_,
              .servers = static_cast<int>(options_.servers.size()),
              .trainers = facts_.trainers,
              .run = options_.run,
              .plan = facts_.plan_fingerprint.value_or(0),
              .values = {}},
             values)
      .In(StrCat("checkpoint of step ", step));
}

}  // namespace penstock::pserver
