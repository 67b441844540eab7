// How a LocalStore updates keys: the part of it that knows optimizers, their states and counts.
#include <algorithm>
#include <utility>

#include "executor/kvstore/local_entry.h"
#include "framework/base/strings.h"
#include "framework/text/lexer.h"

namespace penstock::kvstore {
namespace {

template <typename... Parts>
Status NoOptimizer(const Parts&... parts) {
  return FailedPrecondition("E-kv-no-optimizer", StrCat(parts...));
}

// Whether the program of an update depends on the key's name.
bool GoesByName(const KeyOptimizer& optimizer) {
  return optimizer.name == "lars" || optimizer.name == "sgld";
}

}  // namespace

void LocalStore::ForgetUpdates() {
  updates_.clear();
  for (auto& [key, entry] : entries_) {
    for (auto& block : entry->blocks) block = nullptr;
    for (auto& update : entry->updates) update = nullptr;
  }
}

void LocalStore::SetOptimizer(std::optional<KeyOptimizer> optimizer) {
  optimizer_ = std::move(optimizer);
  ForgetUpdates();
  loaded_.clear();
  for (auto& [key, entry] : entries_) {
    entry->count = 0;
    entry->started = false;
    for (const std::string& name : entry->scope.Names()) {
      if (name != kVariable) entry->scope.Erase(name);
    }
  }
}

Status LocalStore::ChangeOptimizer(KeyOptimizer optimizer) {
  if (!optimizer_) return NoOptimizer("there is no optimizer to change; set one first");
  if (!KeepSameStates(*optimizer_, optimizer))
    return NoOptimizer("the optimizer, ", optimizer_->name, ", keeps other states than ",
                       optimizer.ToString(), "; set the new one instead");
  optimizer_ = std::move(optimizer);
  ForgetUpdates();
  return OkStatus();
}

std::int64_t LocalStore::LargestCount() const {
  std::int64_t largest = 0;
  for (const auto& [key, entry] : entries_) largest = std::max(largest, entry->count);
  for (const auto& [key, loaded] : loaded_) largest = std::max(largest, loaded.count);
  return largest;
}

// Puts loaded states over those that the update begins with.
Status LocalStore::TakeStates(const std::string& key, Entry& entry, const KeyUpdate& update) {
  const auto loaded = loaded_.find(key);
  if (loaded == loaded_.end()) return OkStatus();
  const std::vector<Tensor>& states = loaded->second.states;
  const auto misfit = [&](const auto&... parts) {
    return DataLoss("E-kv-states", "the loaded states of key ", SpellName(key),
                    " do not fit: ", StrCat(parts...));
  };
  if (states.size() != update.states.size())
    return misfit("they are ", states.size(), ", and ", optimizer_->name, " has ", update.states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Tensor& own = *entry.scope.FindLocal(update.states[i])->If<Tensor>();
    if (states[i].dtype() != own.dtype() || states[i].shape() != own.shape())
      return misfit("state ", i, " is ", DTypeName(states[i].dtype()), states[i].shape(), ", not ",
                    DTypeName(own.dtype()), own.shape());
  }
  for (std::size_t i = 0; i < states.size(); ++i)
    entry.scope.FindLocal(update.states[i])->As<Tensor>() = states[i].Clone();
  entry.count = loaded->second.count;
  loaded_.erase(loaded);
  return OkStatus();
}

Result<const KeyUpdate*> LocalStore::PrepareUpdate(const std::string& key, Entry& entry, bool by_rows) {
  std::shared_ptr<const KeyUpdate>& update = entry.updates[by_rows ? 1 : 0];
  if (update == nullptr) {
    const Facts& facts = entry.facts;
    const std::string like = StrCat(DTypeName(facts.dtype), facts.shape, by_rows ? " rows " : " dense ",
                                    GoesByName(*optimizer_) ? key : "");
    std::shared_ptr<const KeyUpdate>& shared = updates_[like];
    if (shared == nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(KeyUpdate made, UpdateProgram(*optimizer_, {.key = key,
                                                                            .dtype = facts.dtype,
                                                                            .shape = facts.shape,
                                                                            .rows = by_rows,
                                                                            .variable = kVariable}));
      shared = std::make_shared<const KeyUpdate>(std::move(made));
    }
    update = shared;
  }
  if (executor_ == nullptr) executor_ = std::make_unique<exec::Executor>(ops_);
  if (std::unique_ptr<PreparedBlock>& block = entry.blocks[by_rows ? 1 : 0]; block == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(block, executor_->PrepareBlock(update->program, KeyUpdate::kUpdate, {}));
  }
  if (entry.started) return update.get();
  PENSTOCK_RETURN_IF_ERROR(executor_->RunBlock(update->program, KeyUpdate::kStart, entry.scope));
  PENSTOCK_RETURN_IF_ERROR(TakeStates(key, entry, *update));
  entry.states = update->states;
  entry.started = true;
  return update.get();
}

Status LocalStore::Update(const std::string& key, Entry& entry, Variable gradient, bool by_rows) {
  PENSTOCK_ASSIGN_OR_RETURN(const KeyUpdate* update, PrepareUpdate(key, entry, by_rows));
  const std::int64_t count = entry.count + 1;
  SetNumbers(*update, NumbersAt(*optimizer_, key, count, std::max(count, LargestCount())), entry.scope);
  Variable& held = *entry.scope.FindOrCreate(update->grad);
  held = std::move(gradient);
  PENSTOCK_RETURN_IF_ERROR(entry.blocks[by_rows ? 1 : 0]->Run(entry.scope));
  held.Clear();
  entry.count = count;
  return OkStatus();
}

Result<SavedStates> LocalStore::States(bool with_optimizer) const {
  if (!optimizer_) return NoOptimizer("there is no optimizer whose states could be saved; set one first");
  SavedStates saved;
  if (with_optimizer) saved.optimizer = optimizer_;
  for (const auto& [key, loaded] : loaded_) saved.keys.emplace(key, loaded);
  for (const auto& [key, entry] : entries_) {
    if (!entry->started) continue;
    SavedStates::Key& to = saved.keys[key];
    to.count = entry->count;
    for (const std::string& name : entry->states)
      to.states.push_back(*entry->scope.FindLocal(name)->If<Tensor>());
  }
  return saved;
}

Status LocalStore::SetStates(SavedStates states) {
  if (!states.optimizer && !optimizer_)
    return NoOptimizer("the states come without their optimizer; set one first");
  const bool with_counts = states.optimizer.has_value();
  SetOptimizer(with_counts ? std::move(states.optimizer) : std::move(optimizer_));
  loaded_ = std::move(states.keys);
  if (with_counts) return OkStatus();
  for (auto& [key, loaded] : loaded_) loaded.count = 0;
  return OkStatus();
}

}  // namespace penstock::kvstore
