#include "executor/pserver/memory/key_updater.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::pserver {
kvstore::KeyFacts KeyUpdater::FactsOf(const roles::PieceType& key, const Shape& shape) {
  return {.key = key.name, .dtype = key.dtype, .shape = shape, .rows = key.rows};
}

Result<std::shared_ptr<KeyUpdater>> KeyUpdater::Make(std::shared_ptr<const kvstore::KeyOptimizer> optimizer,
                                                     const roles::PieceType& key, const Shape& shape,
                                                     BlockRunner& runner) {
  PENSTOCK_ASSIGN_OR_RETURN(kvstore::KeyUpdate update,
                            kvstore::UpdateProgram(*optimizer, FactsOf(key, shape)));
  std::shared_ptr<KeyUpdater> made(new KeyUpdater(std::move(optimizer), key.name, std::move(update)));
  PENSTOCK_RETURN_IF_ERROR(runner.RunBlock(made->update_.program, kvstore::KeyUpdate::kStart, made->scope_));
  return made;
}

void KeyUpdater::TakeState(KeyUpdater& from) {
  for (const std::string& name : update_.states) {
    Variable* const here = scope_.Find(name);
    const Variable* const there = from.scope_.Find(name);
    const Tensor* const kept = there == nullptr ? nullptr : there->If<Tensor>();
    if (here == nullptr || kept == nullptr || !kept->initialized()) continue;
    Tensor& state = here->As<Tensor>();
    if (state.shape() == kept->shape() && state.dtype() == kept->dtype()) state = *kept;
  }
}

NamedTensors KeyUpdater::CopyStates() const {
  NamedTensors states;
  for (const std::string& name : update_.states) {
    const Variable* const held = scope_.Find(name);
    const Tensor* const state = held == nullptr ? nullptr : held->If<Tensor>();
    if (state != nullptr && state->initialized()) states.emplace_back(name, state->Clone());
  }
  return states;
}

Status KeyUpdater::ContinueStates(const NamedTensors& states) {
  for (const std::string& name : update_.states) {
    const auto found = std::ranges::find(states, name, &NamedTensors::value_type::first);
    Tensor& state = scope_.FindOrCreate(name)->As<Tensor>();
    const bool fits = found != states.end() && found->second.shape() == state.shape() &&
                      found->second.dtype() == state.dtype();
    if (!fits) {
      return FailedPrecondition("E-checkpoint-differs", "the checkpoint has no ", name, " of ",
                                DTypeName(state.dtype()), state.shape(), " for key ", key_);
    }
    state = found->second.Clone();
  }
  return OkStatus();
}

Status KeyUpdater::Update(Variable gradient, const Counts& counts, Tensor& value, BlockRunner& runner) {
  scope_.FindOrCreate(update_.param)->As<Tensor>() = value;
  *scope_.FindOrCreate(update_.grad) = std::move(gradient);
  kvstore::SetNumbers(update_,
                      kvstore::NumbersAt(*optimizer_, key_, static_cast<std::int64_t>(counts.count),
                                         static_cast<std::int64_t>(counts.largest)),
                      scope_);
  PENSTOCK_RETURN_IF_ERROR(block_.Run(runner, update_.program, kvstore::KeyUpdate::kUpdate, scope_));
  // A runner may have put the value into a new buffer.
  value = scope_.Find(update_.param)->As<Tensor>();
  *scope_.Find(update_.grad) = Variable();
  return OkStatus();
}

}  // namespace penstock::pserver
