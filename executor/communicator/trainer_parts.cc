#include "executor/communicator/trainer_parts.h"

#include <algorithm>

#include "executor/communicator/whole.h"

namespace penstock::communicator {
namespace {

using checkpoint::Found;
using checkpoint::Manifest;
using checkpoint::Value;
using checkpoint::ValueEntry;
using checkpoint::ValueKind;

std::string DeltaName(const std::string& variable, std::uint64_t exchange) {
  return StrCat(variable, "@DELTA@", exchange);
}

Value ValueOf(std::string name, ValueKind kind, const Variable& variable) {
  const auto* const rows = variable.If<SelectedRows>();
  const Tensor& tensor = rows != nullptr ? rows->value : *variable.If<Tensor>();
  return {.entry = {.name = std::move(name),
                    .kind = kind,
                    .of = {},
                    .row_begin = {},
                    .rows = rows != nullptr,
                    .type = StrCat(DTypeName(tensor.dtype()), tensor.shape())},
          .value = variable};
}

Result<Manifest> OwnPart(const Found& found, int trainer) {
  if (static_cast<std::size_t>(trainer) < found.trainers.size())
    return found.trainers[static_cast<std::size_t>(trainer)];
  return checkpoint::DiffersFrom(found.folder, StrCat("it has no part of trainer ", trainer));
}

}  // namespace

TrainerParts::TrainerParts(PartOptions options, int trainer)
    : options_(std::move(options)),
      trainer_(trainer),
      writer_(*options_.disk, {.folder = options_.folder, .keep = options_.keep}),
      last_(options_.resume.value_or(0)),
      keeps_from_(options_.every == 0 ? 0 : awaited()) {}

void TrainerParts::Keep(std::uint64_t exchange, const Deltas& deltas) {
  Kept& kept = kept_.emplace_back(Kept{.exchange = exchange, .deltas = {}});
  for (const auto& [name, delta] : deltas) {
    const auto* const rows = delta.If<SelectedRows>();
    kept.bytes += rows != nullptr ? rows->value.bytes() + rows->rows.size() * sizeof(std::int64_t)
                                  : delta.If<Tensor>()->bytes();
    kept.deltas.emplace_back(name, CopyOf(delta));
  }
  kept_bytes_ += kept.bytes;
}

Status TrainerParts::SaveIfDue(const Count& count, const std::function<Values()>& values) {
  if (options_.every == 0 || count.exchanges < keeps_from_) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Found> all,
                            checkpoint::FindCheckpoints(*options_.disk, options_.folder, last_));
  for (const Found& found : all) {
    if (found.step <= last_ || found.parts.empty() || found.parts.front().run != options_.run) continue;
    std::uint64_t least = count.exchanges;
    for (const Manifest& part : found.parts)
      least = std::min(least, part.steps_in[static_cast<std::size_t>(trainer_)]);
    PENSTOCK_RETURN_IF_ERROR(
        Write(found, least, count, values()).In(StrCat("the trainer's part of checkpoint ", found.step)));
    last_ = found.step;
    keeps_from_ = std::max(least, awaited());
    while (!kept_.empty() && kept_.front().exchange < keeps_from_) {
      kept_bytes_ -= kept_.front().bytes;
      kept_.pop_front();
    }
  }
  return OkStatus();
}

Status TrainerParts::Write(const Found& found, std::uint64_t least, const Count& count,
                           const Values& values) {
  std::vector<Value> all;
  for (const auto& [name, tensor] : values) {
    Variable variable;
    variable.As<Tensor>() = tensor;
    all.push_back(ValueOf(name, ValueKind::kParam, variable));
  }
  for (const Kept& kept : kept_) {
    if (kept.exchange < least) continue;
    for (const auto& [name, delta] : kept.deltas)
      all.push_back(ValueOf(DeltaName(name, kept.exchange), ValueKind::kState, delta));
  }
  const Manifest& of_server = found.parts.front();
  return writer_.Write({.step = found.step,
                        .server = trainer_,
                        .servers = of_server.trainers,
                        .trainers = of_server.trainers,
                        .run = options_.run,
                        .plan = of_server.plan,
                        .of_trainer = Manifest::Own{.exchanges = count.exchanges, .steps = count.steps},
                        .values = {}},
                       all);
}

Result<TrainerParts::Saved> TrainerParts::Restore(std::uint64_t exchanges) const {
  PENSTOCK_ASSIGN_OR_RETURN(const Found found,
                            checkpoint::FindWhole(*options_.disk, options_.folder, *options_.resume));
  PENSTOCK_ASSIGN_OR_RETURN(const Manifest part, OwnPart(found, trainer_));
  Saved saved{.count = {.exchanges = part.of_trainer->exchanges, .steps = part.of_trainer->steps},
              .values = {},
              .deltas = {}};
  std::map<std::string, Variable> all;
  for (const ValueEntry& entry : part.values) {
    Variable& value = all[entry.name];
    if (entry.rows) {
      PENSTOCK_ASSIGN_OR_RETURN(value.As<SelectedRows>(),
                                checkpoint::ReadRows(*options_.disk, found.folder, entry,
                                                     checkpoint::RecordsOf(part, entry).front()));
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(value, checkpoint::ReadValue(*options_.disk, found.folder, part, entry));
    }
  }
  for (std::uint64_t exchange = exchanges; exchange < saved.count.exchanges; ++exchange) {
    std::map<std::string, Variable>& deltas = saved.deltas.emplace_back();
    const std::string suffix = DeltaName("", exchange);
    for (auto& [name, value] : all) {
      if (name.ends_with(suffix)) deltas.emplace(name.substr(0, name.size() - suffix.size()), value);
    }
  }
  for (auto& [name, value] : all) {
    if (const Tensor* tensor = std::as_const(value).If<Tensor>(); tensor != nullptr)
      saved.values.emplace(name, *tensor);
  }
  return saved;
}

Result<std::optional<std::uint64_t>> TrainerParts::StepsIn(const PartOptions& options, int trainer) {
  if (options.disk == nullptr || options.resume.value_or(0) == 0) return std::optional<std::uint64_t>();
  PENSTOCK_ASSIGN_OR_RETURN(const Found found,
                            checkpoint::FindWhole(*options.disk, options.folder, *options.resume));
  if (found.trainers.empty()) return std::optional<std::uint64_t>();
  PENSTOCK_ASSIGN_OR_RETURN(const Manifest part, OwnPart(found, trainer));
  return std::optional(part.of_trainer->steps);
}

}  // namespace penstock::communicator
