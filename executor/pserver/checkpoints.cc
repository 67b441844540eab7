#include "executor/pserver/checkpoints.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/text/job_facts.h"

namespace penstock::pserver {
namespace {

using checkpoint::Reader;
using checkpoint::Value;
using checkpoint::ValueEntry;
using checkpoint::ValueKind;

// The values that a table's policy of rows keeps.
std::string LifeName(const roles::ServedParam& table) { return table.param.name + "@ROWS"; }
std::string ClockName(const roles::ServedParam& table) { return table.param.name + "@ROWS@CLOCK"; }

std::string TypeOf(const Tensor& tensor) { return StrCat(DTypeName(tensor.dtype()), tensor.shape()); }

// Whether the value is one of those that ChunkStore::CopyTable has for rows that missed updates.
bool IsHistory(const roles::ServedParam& served, const std::string& name) {
  return name == ChunkStore::VersionsOf(served.param.name) ||
         name == ChunkStore::HistoryOf(served.param.name);
}

// What makes a checkpoint impossible; empty: nothing.
std::string WhyNone(const roles::PserverFacts& facts, int backup_trainers, bool by_time) {
  if (facts.mode == roles::ServeMode::kGeo && by_time)
    return "in geo training, trainers add their parts at an interval of exchanges";
  const bool sync = facts.mode == roles::ServeMode::kSync;
  if (sync && !facts.counters.empty()) return "its learning rate counts steps that trainers report";
  if (std::ranges::any_of(facts.params, [](const auto& served) { return !served.backups.empty(); }))
    return "delay compensation keeps what each trainer has read";
  if (backup_trainers > 0) return "with backup trainers, servers may use different gradients for a step";
  if (ModeOfJob(facts.job_facts) == "hybrid") return "trainers keep the dense parameters themselves";
  return {};
}

}  // namespace

Result<std::unique_ptr<Checkpoints>> Checkpoints::Make(Disk& disk, CheckpointOptions options,
                                                       const roles::PserverFacts& facts,
                                                       const Program& program, int backup_trainers) {
  const bool by_time = options.share.has_value();
  if (const std::string why = WhyNone(facts, backup_trainers, by_time); !why.empty()) {
    Status none =
        Unimplemented("E-checkpoint-mode", "pserver ", facts.address, " makes no checkpoints: ", why);
    if (facts.mode == roles::ServeMode::kGeo)
      return std::move(none).With("give --checkpoint_steps a number of exchanges");
    return std::move(none).With("use synchronous or asynchronous training, or fluid.io.save_persistables");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int server, options.NumberOf(facts.address));
  std::unique_ptr<Checkpoints> made(new Checkpoints(disk, std::move(options), facts, server));
  made->NotePlaces(program);
  PENSTOCK_RETURN_IF_ERROR(made->options_.PrepareFolder(disk, made->writer_, server));
  return made;
}

// A program of Fluid does not record the rows; a variable may then be the whole or a slice.
void Checkpoints::NotePlaces(const Program& program) {
  bool recorded = true;
  for (const roles::ServedParam& served : facts_.params)
    recorded &= served.by_id || served.row_begin.has_value();
  for (const auto& var : program.main().vars()) {
    if (!var->persistable) continue;
    Place& place = places_[var->name];
    const auto& slice = var->facts.slice;
    if (slice && !slice->whole.empty()) {
      place = {.whole = slice->whole, .row_begin = slice->row_begin, .whole_rows = {}};
      if (slice->whole_shape.rank() > 0) place.whole_rows = slice->whole_shape[0];
    } else {
      place = {.whole = var->name, .row_begin = {}, .whole_rows = {}};
      if (recorded) place.row_begin = 0;
    }
  }
}

// A server that was started again by itself continues from its own part, whether others have theirs or not.
Result<std::optional<checkpoint::Found>> Checkpoints::Find() {
  const auto servers = static_cast<int>(options_.servers.size());
  if (options_.restarts > 0) {
    PENSTOCK_ASSIGN_OR_RETURN(
        std::optional<checkpoint::OwnPart> own,
        checkpoint::NewestOwnPart(disk_, options_.folder,
                                  {.server = server_, .servers = servers, .run = options_.run}));
    if (own) {
      own_part_ = 0;
      restarted_ = true;
      checkpoint::Found found{.step = own->manifest.step, .folder = std::move(own->folder)};
      found.parts.push_back(std::move(own->manifest));
      return std::optional(std::move(found));
    }
  }
  if (first_step() == 0) return std::optional<checkpoint::Found>();
  PENSTOCK_ASSIGN_OR_RETURN(checkpoint::Found found,
                            checkpoint::FindWhole(disk_, options_.folder, *options_.resume));
  if (found.parts.size() == options_.servers.size()) own_part_ = server_;
  return std::optional(std::move(found));
}

// Whether the part has the params of this server, in the same slices.
bool Checkpoints::HasOwnSlices(const checkpoint::Manifest& part) const {
  return std::ranges::all_of(facts_.params, [&](const roles::ServedParam& served) {
    const auto entry = std::ranges::find(part.values, served.param.name, &ValueEntry::name);
    if (entry == part.values.end()) return served.start;
    const auto place = places_.find(served.param.name);
    return served.by_id || ((place == places_.end() || entry->row_begin == place->second.row_begin) &&
                            entry->type == StrCat(DTypeName(served.param.dtype), served.param.shape));
  });
}

// What this server begins with of each trainer in asynchronous training: the steps that its own part has, of
// which the first are in the parts of all servers.
Status Checkpoints::FindStarts(const checkpoint::Found& found) {
  const bool has_steps = !found.parts.front().steps_in.empty();
  if (has_steps != by_trainer())
    return Differs(has_steps ? "its training was asynchronous" : "its training was synchronous");
  if (!by_trainer()) return OkStatus();
  if (const bool geo = found.parts.front().with_trainers; geo != is_geo())
    return Differs(geo ? "its training was geo-SGD" : "its training was not geo-SGD");
  const checkpoint::Manifest& own = found.parts[own_part_ < 0 ? 0 : static_cast<std::size_t>(own_part_)];
  if (own_part_ < 0 || own.trainers != facts_.trainers || !HasOwnSlices(own)) {
    return Differs(
        StrCat("it has ", found.parts.size(), " parts, of a job with ", own.trainers,
               " trainers. Asynchronous training continues with as many pservers and trainers, and ",
               "the same slices of parameters"));
  }
  const bool counts = !facts_.counters.empty();
  const auto start_in = [&](const checkpoint::Manifest& part, std::size_t trainer) {
    MachineConfig::Start start{.taken = part.steps_in[trainer]};
    if (counts && !part.counted.empty()) start.counted = StepSet(part.counted[trainer]);
    return start;
  };
  for (std::size_t t = 0; t < starts_.size(); ++t) {
    MachineConfig::Start& start = starts_[t];
    start = start_in(own, t);
    if (!own.began_at.empty() && restarted_) {
      start.first_step = own.began_at[t];
    } else if (!restarted_) {
      start.first_step = start.Durable(counts);
      for (const checkpoint::Manifest& part : found.parts)
        start.first_step = std::min(start.first_step, start_in(part, t).Durable(counts));
    }
    start.taken -= start.first_step;
    if (!restarted_) start.ahead = start.taken;
    if (restarted_ && !own.ahead.empty()) start.ahead = own.ahead[t];
    // The trainer began with first_step. That it has ended what the server had then shows in a later step.
    start.ended = start.taken > start.ahead ? start.taken : 0;
    start.counted = start.counted.Earlier(start.first_step);
  }
  return OkStatus();
}

Status Checkpoints::Differs(const std::string& how) const {
  return checkpoint::DiffersFrom(FolderOf(restored_step()), how);
}

Result<std::set<std::string>> Checkpoints::Restore(Scope& scope) {
  if (by_trainer()) starts_.resize(static_cast<std::size_t>(facts_.trainers));
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<checkpoint::Found> found, Find());
  if (!found) return std::set<std::string>();
  restored_step_ = found->step;
  PENSTOCK_RETURN_IF_ERROR(FindStarts(*found));
  PENSTOCK_ASSIGN_OR_RETURN(const Reader reader, Reader::Make(disk_, *std::move(found)));
  for (const roles::ServedParam& served : facts_.params) {
    if (!served.start) continue;
    Variable held;
    held.As<Tensor>() = Tensor(served.param.dtype, served.param.shape);
    PENSTOCK_ASSIGN_OR_RETURN(const bool there, RestoreOne(reader, served.param.name, held));
    if (there) held_.emplace_back(served.param.name, *held.If<Tensor>());
    if (there) restored_.insert(served.param.name);
  }
  for (const auto& [name, place] : places_) {
    Variable* variable = restored_.contains(name) ? nullptr : scope.Find(name);
    if (variable == nullptr || !variable->initialized()) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const bool there, RestoreOne(reader, name, *variable));
    if (there) restored_.insert(name);
  }
  PENSTOCK_RETURN_IF_ERROR(RestoreHistories(reader, scope));
  for (const roles::ServedParam& served : facts_.params) {
    if (served.by_id) PENSTOCK_RETURN_IF_ERROR(ReadLife(reader, served));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckNoneIsLeft(reader));
  return restored_;
}

Result<bool> Checkpoints::RestoreOne(const Reader& reader, const std::string& name,
                                     Variable& variable) const {
  if (auto* rows = variable.If<SelectedRows>()) return RestoreTable(reader, name, *rows);
  Tensor* there = variable.If<Tensor>();
  if (there == nullptr) return false;
  const auto found = places_.find(name);
  Place place =
      found == places_.end() ? Place{.whole = name, .row_begin = {}, .whole_rows = {}} : found->second;
  if (place.whole == name && !place.whole_rows && there->shape().rank() > 0)
    place.whole_rows = there->shape()[0];
  const Reader::Need need{.name = name,
                          .whole = place.whole,
                          .row_begin = place.row_begin.value_or(0),
                          .whole_rows = place.whole_rows,
                          .type = there->dtype(),
                          .shape = there->shape(),
                          .own_part = own_part_};
  if (!reader.Has(need)) return false;
  PENSTOCK_ASSIGN_OR_RETURN(const Tensor saved, reader.ReadRows(need));
  std::memcpy(there->raw(), saved.raw(), saved.bytes());
  return true;
}

// The rows of tables that belong to this server: they are placed by id, as `split_ids` does it.
Result<SelectedRows> Checkpoints::ReadOwnRows(const Reader& reader, const std::string& name) const {
  const std::size_t servers = options_.servers.size();
  const auto own = static_cast<std::size_t>(facts_.number < 0 ? server_ : facts_.number);
  return reader.ReadTable(name, own_part_,
                          [=](std::int64_t id) { return static_cast<std::size_t>(id) % servers == own; });
}

// What the policy of a table's rows continues from, until Complete.
Status Checkpoints::ReadLife(const Reader& reader, const roles::ServedParam& table) {
  const std::string life = LifeName(table), clock = ClockName(table);
  if (reader.Find(life) == nullptr || reader.Find(clock) == nullptr) return OkStatus();
  table::LifeCopy& copy = lives_[table.param.name];
  PENSTOCK_ASSIGN_OR_RETURN(copy.headers, ReadOwnRows(reader, life));
  PENSTOCK_ASSIGN_OR_RETURN(copy.clock, ReadHistory(reader, clock));
  restored_.insert({life, clock});
  return OkStatus();
}

Status Checkpoints::ContinueLives(ChunkStore& store) {
  const auto lives = std::exchange(lives_, {});
  for (std::size_t p = 0; p < facts_.params.size(); ++p) {
    const std::string& table = facts_.params[p].param.name;
    if (!store.KeepsLife(static_cast<int>(p))) continue;
    const auto life = lives.find(table);
    if (life == lives.end()) return Differs(StrCat("it was made without a policy of the rows of ", table));
    PENSTOCK_RETURN_IF_ERROR(store.RestoreLife(static_cast<int>(p), life->second));
  }
  return OkStatus();
}

Result<bool> Checkpoints::RestoreTable(const Reader& reader, const std::string& name,
                                       SelectedRows& rows) const {
  const checkpoint::Whole* whole = reader.Find(name);
  if (whole == nullptr) return false;
  if (!whole->rows || whole->type != rows.value.dtype() ||
      whole->shape.WithRows(0) != rows.value.shape().WithRows(0)) {
    return Differs(StrCat("its ", name, whole->rows ? " has rows of " : " is ", DTypeName(whole->type),
                          whole->shape, ", here it has rows of ", TypeOf(rows.value)));
  }
  PENSTOCK_ASSIGN_OR_RETURN(SelectedRows saved, ReadOwnRows(reader, name));
  rows.rows = std::move(saved.rows);
  rows.value = std::move(saved.value);  // `start` gives the rows that are not listed
  return true;
}

Status Checkpoints::RestoreHistories(const Reader& reader, Scope& scope) {
  for (const auto& [name, whole] : reader.wholes()) {
    const auto has_it = [&of = whole.of](const roles::ServedParam& served) {
      return served.by_id && served.logical == of;
    };
    if (whole.kind != ValueKind::kHistory || std::ranges::none_of(facts_.params, has_it)) continue;
    Variable& to = *scope.FindOrCreate(name);
    if (whole.rows) {
      PENSTOCK_ASSIGN_OR_RETURN(to.As<SelectedRows>(), ReadOwnRows(reader, name));
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(to.As<Tensor>(), ReadHistory(reader, name));
    }
    restored_.insert(name);
  }
  return OkStatus();
}

// The own one may have another length than those of other servers: to momentum, a gradient without rows of
// this server is no step.
Result<Tensor> Checkpoints::ReadHistory(const Reader& reader, const std::string& name) const {
  const checkpoint::Whole& whole = *reader.Find(name);
  Reader::Need need{
      .name = name, .whole = name, .type = whole.type, .shape = whole.shape, .own_part = own_part_};
  for (const checkpoint::Whole::Piece& piece : whole.pieces) {
    if (static_cast<int>(piece.part) == need.own_part) need.shape = piece.shape;
  }
  return reader.ReadRows(need);
}

// Whether all that the checkpoint has of this server's params is here.
Status Checkpoints::CheckNoneIsLeft(const Reader& reader) const {
  std::set<std::string> params, wholes;
  for (const roles::ServedParam& served : facts_.params) params.insert(served.logical);
  for (const std::string& name : restored_) {
    const auto place = places_.find(name);
    wholes.insert(place == places_.end() ? name : place->second.whole);
  }
  for (const auto& [name, whole] : reader.wholes()) {
    if (!whole.of.empty() && params.contains(whole.of) && !wholes.contains(name))
      return Differs(StrCat("pserver ", server_, " has no ", name));
  }
  return OkStatus();
}

Status Checkpoints::Complete(Scope& scope, ChunkStore& store) {
  if (restored_step() == 0) return OkStatus();
  for (const auto& [name, value] : std::exchange(held_, {})) {
    Tensor& there = scope.FindOrCreate(name)->As<Tensor>();
    std::memcpy(there.raw(), value.raw(), value.bytes());
  }
  for (int param = -1; param < static_cast<int>(facts_.params.size()); ++param) {
    for (const std::string& name : store.KeptNames(param)) {
      if (restored_.contains(name)) continue;
      return Differs(StrCat("pserver ", server_, " has ", name, ", which the checkpoint lacks"));
    }
  }
  return ContinueLives(store);
}

Value Checkpoints::ValueOf(const std::string& name, ValueKind kind, std::string of,
                           const Tensor& tensor) const {
  Value value{
      .entry = {.name = name, .kind = kind, .of = std::move(of), .row_begin = {}, .type = TypeOf(tensor)},
      .value = {}};
  if (const auto place = places_.find(name); place != places_.end()) {
    if (place->second.whole != name) value.entry.whole = place->second.whole;
    value.entry.row_begin = place->second.row_begin;
  }
  value.value.As<Tensor>() = tensor;
  return value;
}

Value Checkpoints::RowsOf(const std::string& name, ValueKind kind, const std::string& of,
                          SelectedRows rows) const {
  Value value = ValueOf(name, kind, of, rows.value);
  value.entry.row_begin.reset();
  value.entry.rows = true;
  value.value.As<SelectedRows>() = std::move(rows);
  return value;
}

std::shared_ptr<StateCopy> Checkpoints::CopyFor(int param, const ChunkStore& store) {
  std::shared_ptr<StateCopy>& copy = copies_[param];
  if (copy == nullptr) copy = store.BeginStateCopy(param);
  return copy;
}

std::vector<Value> Checkpoints::ValuesOf(const roles::ServedParam& served, TableCopy copy) const {
  std::vector<Value> values;
  const auto add = [&](const std::string& name, ValueKind kind, SelectedRows rows, Dim rows_all) {
    Value& value = values.emplace_back(RowsOf(name, kind, served.logical, std::move(rows)));
    value.saved_as = copy.has_changes ? Value::Rows::kChanges : Value::Rows::kBase;
    value.rows_all = rows_all;
    value.gone = copy.gone;
  };
  const SelectedRows& rows = copy.rows;
  for (std::size_t i = copy.scalars; i < copy.state.size(); ++i) {
    const std::string& name = copy.state[i].first;
    add(name, IsHistory(served, name) ? ValueKind::kHistory : ValueKind::kState,
        {.rows = rows.rows, .height = rows.height, .value = copy.state[i].second}, copy.rows_all);
  }
  for (std::size_t i = 0; i < copy.scalars; ++i) {
    const std::string& name = copy.state[i].first;
    const ValueKind kind = IsHistory(served, name)             ? ValueKind::kHistory
                           : i + copy.constants < copy.scalars ? ValueKind::kState
                                                               : ValueKind::kConstant;
    values.push_back(ValueOf(name, kind, served.logical, copy.state[i].second));
  }
  if (copy.life) {
    add(LifeName(served), ValueKind::kPolicy, std::move(copy.life->headers), copy.life_all);
    if (copy.life->clock.initialized())
      values.push_back(ValueOf(ClockName(served), ValueKind::kPolicy, served.logical, copy.life->clock));
  }
  add(served.param.name, ValueKind::kParam, std::move(copy.rows), copy.rows_all);
  return values;
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
  }
  // A server that updates nothing does not run its schedule.
  const bool updates =
      std::ranges::any_of(facts_.params, [](const roles::ServedParam& served) { return !served.start; });
  for (auto& [name, tensor] : std::exchange(shared_, {})) {
    if (updates) values.push_back(ValueOf(name, ValueKind::kSchedule, {}, tensor));
  }
  return values;
}

std::optional<Checkpoints::Newest> Checkpoints::FindNewest() const {
  const Result<std::vector<checkpoint::Found>> all = checkpoint::FindCheckpoints(disk_, options_.folder);
  if (!all.ok()) return std::nullopt;
  const auto found =
      std::find_if(all->rbegin(), all->rend(), [](const checkpoint::Found& one) { return one.whole(); });
  if (found == all->rend()) return std::nullopt;
  Newest newest{.step = found->step};
  for (const checkpoint::Manifest& part : found->parts)
    newest.took_ms = std::max(newest.took_ms, part.last_ms);
  return newest;
}

checkpoint::Manifest Checkpoints::HeadOf(const WriteCutAction& write) const {
  const auto of_starts = [this](std::uint64_t MachineConfig::Start::*member) {
    std::vector<std::uint64_t> steps;
    for (const MachineConfig::Start& start : starts_) steps.push_back(start.*member);
    if (std::ranges::all_of(steps, [](std::uint64_t step) { return step == 0; })) steps.clear();
    return steps;
  };
  return {.step = write.step,
          .server = server_,
          .servers = static_cast<int>(options_.servers.size()),
          .trainers = facts_.trainers,
          .run = options_.run,
          .plan = facts_.plan_fingerprint.value_or(0),
          .last_ms = took_ms_,
          .steps_in = write.steps_in,
          .began_at = of_starts(&MachineConfig::Start::first_step),
          .ahead = of_starts(&MachineConfig::Start::ahead),
          .counted = write.counted,
          .with_trainers = is_geo(),
          .values = {}};
}

void Checkpoints::WriteRows(std::uint64_t step, int param, TableCopy rows) {
  if (copied_.ok()) copied_ = rows.status;
  if (!copied_.ok()) return;
  const checkpoint::Manifest head = HeadOf({.step = step});
  for (const Value& value : ValuesOf(facts_.params[static_cast<std::size_t>(param)], std::move(rows)))
    if (!writer_.Append(head, value).ok()) return;
}

Status Checkpoints::Write(const WriteCutAction& write, const std::vector<Value>& values) {
  const std::string what = StrCat("checkpoint of step ", write.step);
  if (!copied_.ok()) return Status(copied_).In(what);
  return writer_.Write(HeadOf(write), values).In(what);
}

}  // namespace penstock::pserver
