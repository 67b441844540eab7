// A pserver of a key-value store: keys, barriers of the workers, and the optimizer that they choose.
#include <algorithm>

#include "executor/kvstore/key_table.h"
#include "executor/pserver/machine/policies/key_policy.h"
#include "executor/pserver/pserver.h"

namespace penstock::pserver {
namespace {

constexpr std::uint64_t kSettingsMax = 1 << 20;  // calls of SetOptimizer

roles::PserverFacts RoleOf(const KeyServerFacts& facts) {
  roles::PserverFacts role;
  role.address = facts.address;
  role.trainers = facts.workers;
  return role;
}

}  // namespace

Result<std::unique_ptr<Pserver>> Pserver::MakeForKeys(const KeyServerFacts& facts, BlockRunner& blocks,
                                                      PserverOptions options) {
  if (facts.workers < 1) {
    return InvalidArgument("E-server-trainers", "pserver ", facts.address, ": the number of workers is ",
                           facts.workers, "; it must be at least 1");
  }
  if (options.checkpoints.used() && options.trainer_loss == TrainerLoss::kShrink) {
    return Unimplemented("E-kv-checkpoint", "pserver ", facts.address,
                         " serves keys, and makes no checkpoints while the others go on without a worker")
        .With("use on_trainer_loss=wait or abort");
  }
  std::unique_ptr<Pserver> server(new Pserver(RoleOf(facts), blocks, std::move(options)));
  server->keys_ = std::make_unique<Keys>(facts.workers);
  server->key_ops_ = facts.ops;
  server->no_program_ = std::make_unique<Program>();
  PENSTOCK_RETURN_IF_ERROR(server->BeginKeyCheckpoints());
  PENSTOCK_ASSIGN_OR_RETURN(server->store_,
                            ChunkStore::Make(*server->no_program_, server->facts_, server->key_scope_, {},
                                             server->options_.part_bytes, server->options_.table_shards));
  server->queues_ = std::make_unique<ChunkQueues>(server->store_->queue_count(), server->options_.run);
  MachineConfig config;
  config.trainers = facts.workers;
  config.part_bytes = server->options_.part_bytes;
  config.trainer_loss = server->options_.trainer_loss;
  config.cuts_keys = server->key_saves_ != nullptr && server->key_saves_->every() > 0;
  config.first_cut = server->key_saves_ == nullptr ? 0 : server->key_saves_->first_step();
  if (config.trainer_loss == TrainerLoss::kWait) server->store_->KeepVersions();
  server->notes_ = JobNotes(server->options_.observer, config.trainers, {}, true);
  if (observe::Observer* const observer = server->options_.observer)
    server->trace_ = ServerTrace(observer->tracer(), server->facts_);
  server->machine_ = std::make_unique<StateMachine>(std::move(config), std::make_unique<KeyPolicy>());
  return server;
}

Status Pserver::BeginKeyCheckpoints() {
  if (!options_.checkpoints.used()) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(
      key_saves_,
      KeyCheckpoints::Make(*options_.disk, options_.checkpoints,
                           {.address = facts_.address, .workers = facts_.trainers, .ops = key_ops_}));
  if (options_.checkpoints.restarts_max > 0 && options_.on_fixed)
    options_.on_fixed("pservers of keys continue together, from a checkpoint of the job");
  if (const std::uint64_t step = key_saves_->first_step(); step > 0) {
    options_.report(StrCat("pserver ", facts_.address, " continues after step ", step, " from ",
                           key_saves_->FolderOf(step)));
  }
  return OkStatus();
}

// What a checkpoint has of a new key; also checks that checkpoints may have it.
Result<std::optional<KeyCheckpoints::Kept>> Pserver::KeptOf(const protocol::KeyBody& key) {
  if (key_saves_ == nullptr) return std::optional<KeyCheckpoints::Kept>();
  if (!key.table.empty() || key.turns) {
    return Unimplemented("E-kv-checkpoint", key.table.empty() ? "key " : "table ", Quote(key.name),
                         key.table.empty() ? " is of an asynchronous store" : " has rows of any id",
                         ", of which pservers of keys make no checkpoints")
        .With(key.table.empty()
                  ? "use dist_sync, or leave --checkpoint_steps out"
                  : "leave --checkpoint_steps out, or use a program with a distributed lookup table");
  }
  if (!key.moved && key_saves_->HasMoved(key.name)) {
    return InvalidArgument("E-kv-optimizer-split", "key ", Quote(key.name),
                           " lies in pieces, and is whole in the checkpoint");
  }
  return key_saves_->Take(key);
}

// The chunks of a new key continue from the checkpoint. `since`: for the workers that declare it.
Status Pserver::ContinueKey(int param, KeyCheckpoints::Kept kept) {
  if (kept.chunks.size() != store_->chunk_count(param)) {
    return FailedPrecondition("E-checkpoint-differs", "the checkpoint has key ", Quote(kept.entry.name),
                              " in ", kept.chunks.size(), " chunks, and it has ", store_->chunk_count(param),
                              " here");
  }
  resumed_[param] = {.since = kept.entry.since, .optimizer = kept.chunks.front().optimizer};
  for (std::size_t k = 0; k < kept.chunks.size(); ++k) {
    const ChunkId at{param, static_cast<int>(k)};
    const auto from = std::make_shared<const KeyCopy>(std::move(kept.chunks[k]));
    queues_->Push(store_->QueueOf(at.param, at.chunk), ChunkQueues::Size::kLarge, [this, at, from] {
      const Status status = store_->ContinueKey(at, *from, blocks_);
      if (status.ok()) return;
      Done([&](Actions& next) { machine_->Fail(status, next); });
    });
  }
  return OkStatus();
}

// The first optimizer that a script sets in a job that continues goes on with the states of the checkpoint:
// its numbers may be others.
Status Pserver::ContinuesWith(const kvstore::KeyOptimizer& optimizer, int param) const {
  const auto found = resumed_.find(param);
  if (found == resumed_.end() || found->second.optimizer == nullptr || optimizer_resets_ > 1)
    return OkStatus();
  if (kvstore::KeepSameStates(*found->second.optimizer, optimizer)) return OkStatus();
  return FailedPrecondition("E-checkpoint-differs", "the checkpoint has key ", Quote(machine_->name(param)),
                            " with the states of ", found->second.optimizer->name,
                            ", and this job updates it by ", optimizer.name)
      .With("set the optimizer of the checkpoint first; a second call of set_optimizer begins anew");
}

Result<int> Pserver::AddKey(const protocol::KeyBody& key) {
  int param = keys_->Find(key);
  const bool is_new = param < 0;
  if (is_new) {
    PENSTOCK_RETURN_IF_ERROR(Keys::Check(key));
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<KeyCheckpoints::Kept> kept, KeptOf(key));
    protocol::ContractPiece piece{.name = key.name,
                                  .dtype = static_cast<DType>(key.dtype),
                                  .shape = Shape(key.shape),
                                  .rows = key.rows};
    ChunkStore::NewKey added{.piece = std::move(piece), .turns = key.turns, .whole = key.whole};
    if (!key.table.empty()) {
      PENSTOCK_ASSIGN_OR_RETURN(added.table, TableOf(key));
    }
    PENSTOCK_ASSIGN_OR_RETURN(param, store_->AddKey(added));
    MachineConfig::Param shape = store_->ShapeOf(param);
    shape.restored = kept.has_value();
    const std::uint64_t rounds = kept ? kept->entry.rounds : 0;
    queues_->Add(store_->chunk_count(param));
    notes_.AddParam(shape);
    trace_.AddKey(key.name);
    admission_.AddKey();
    machine_->AddParam(shape, rounds);
    keys_->Add(key, param);
    if (kept) PENSTOCK_RETURN_IF_ERROR(ContinueKey(param, *std::move(kept)));
  } else {
    PENSTOCK_RETURN_IF_ERROR(keys_->CheckSame(key));
  }
  if (keys_->IsLeft(param)) {
    return InvalidArgument("E-kv-optimizer-split", "key ", Quote(key.name),
                           " lies in pieces, and other workers have moved it to one server");
  }
  if (optimizer_ == nullptr || !TakesOptimizer(param)) return param;
  PENSTOCK_RETURN_IF_ERROR(store_->OptimizerFits(*optimizer_, param));
  PENSTOCK_RETURN_IF_ERROR(ContinuesWith(*optimizer_, param));
  if (is_new) StartUpdates(param, optimizer_resets_ <= 1 && resumed_.contains(param));
  return param;
}

Result<std::shared_ptr<const kvstore::KeyTable>> Pserver::TableOf(const protocol::KeyBody& key) const {
  if (key_ops_ == nullptr)
    return Unimplemented("E-kv-table", "pserver ", facts_.address, " keeps no tables of any ids");
  PENSTOCK_ASSIGN_OR_RETURN(kvstore::TableSpec spec, kvstore::ParseTableSpec(key.table));
  return kvstore::KeyTable::Make(
      {.name = key.name, .dtype = static_cast<DType>(key.dtype), .width = key.shape[1]}, std::move(spec),
      *key_ops_);
}

// The optimizer of all keys is not for a table, which has its own.
bool Pserver::TakesOptimizer(int param) const { return !keys_->IsLeft(param) && !store_->IsTable(param); }

void Pserver::On(const From& from, const protocol::DeclareKey& declare, Actions&) {
  if (!ServesKeys()) return RefuseKeys(from);
  At(from.trainer).worked = true;
  protocol::KeyDeclared reply{.request = declare.request, .body = {}};
  if (declare.body.leaves) {
    const int left = keys_->Find(declare.body);
    if (keys_->LeaveKey(declare.body, from.trainer)) DropKey(left);
    return SendTo(from.trainer, std::move(reply));
  }
  const Result<int> param = AddKey(declare.body);
  if (param.ok()) {
    reply.variable = admission_.terms(from.trainer).VariableOf(*param);
    reply.welcome_below = machine_->least_credit(*param, from.trainer);
    reply.body.chunk_rows = static_cast<std::uint64_t>(store_->chunk_rows(*param));
    reply.body.pushes = machine_->whole_below(*param, from.trainer);
    if (const auto kept = resumed_.find(*param); kept != resumed_.end())
      reply.body.since = kept->second.since;
    if (store_->IsTable(*param)) reply.body.shards = static_cast<std::uint32_t>(store_->chunk_count(*param));
  } else {
    reply.body.status = Status(param.status()).In(StrCat("pserver ", facts_.address));
  }
  SendTo(from.trainer, std::move(reply));
}

void Pserver::DropKey(int param) {
  for (int chunk = 0; chunk < static_cast<int>(store_->chunk_count(param)); ++chunk) {
    queues_->Push(store_->QueueOf(param, chunk), ChunkQueues::Size::kLarge, [this, param, chunk] {
      store_->DropKey({param, chunk});
    });
  }
}

void Pserver::RefuseKeys(const From& from) {
  Refuse(from.caller,
         FailedPrecondition("E-rpc-keys", "pserver ", facts_.address, " runs a program and serves no keys"));
}

// From now on each chunk of the key is updated by the optimizer.
void Pserver::StartUpdates(int param, bool keeps_state) {
  for (int chunk = 0; chunk < static_cast<int>(store_->chunk_count(param)); ++chunk) {
    queues_->Push(store_->QueueOf(param, chunk), ChunkQueues::Size::kLarge,
                  [this, param, chunk, keeps_state, optimizer = optimizer_] {
                    const Status status = store_->SetUpdate(optimizer, {param, chunk}, keeps_state, blocks_);
                    if (status.ok()) return;
                    Done([&](Actions& next) { machine_->Fail(status, next); });
                  });
  }
}

// All keys get it, or none does.
Status Pserver::TakeOptimizer(const protocol::SetOptimizer& set) {
  std::shared_ptr<const kvstore::KeyOptimizer> optimizer;
  if (!set.text.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(kvstore::KeyOptimizer parsed, kvstore::ParseOptimizer(set.text, key_ops_));
    optimizer = std::make_shared<const kvstore::KeyOptimizer>(std::move(parsed));
    for (int param = 0; param < machine_->param_count(); ++param) {
      if (TakesOptimizer(param)) PENSTOCK_RETURN_IF_ERROR(store_->OptimizerFits(*optimizer, param));
      if (!set.keeps_state && optimizer_resets_ == 0)
        PENSTOCK_RETURN_IF_ERROR(ContinuesWith(*optimizer, param));
    }
  }
  optimizer_ = std::move(optimizer);
  if (set.keeps_state == 0) ++optimizer_resets_;
  for (int param = 0; param < machine_->param_count(); ++param) {
    const bool keeps = set.keeps_state != 0 || (optimizer_resets_ == 1 && resumed_.contains(param));
    if (TakesOptimizer(param)) StartUpdates(param, keeps);
  }
  return OkStatus();
}

void Pserver::On(const From& from, const protocol::SetOptimizer& set, Actions&) {
  if (!ServesKeys()) return RefuseKeys(from);
  At(from.trainer).worked = true;
  if (set.number == 0 || set.number > kSettingsMax) {
    return Refuse(from.caller, FailedPrecondition("E-rpc-keys", "trainer ", from.trainer,
                                                  " sets the optimizer in call ", set.number));
  }
  if (keys_->FindSetting(set.number) == nullptr) {
    Status taken = TakeOptimizer(set);
    keys_->AddSetting(set.number, {.text = set.text, .status = std::move(taken)});
  }
  const Keys::Setting& setting = *keys_->FindSetting(set.number);
  Status status = setting.status;
  if (setting.text != set.text) {
    status = InvalidArgument("E-kv-optimizer-differs", "worker ", from.trainer,
                             " sets another optimizer than a worker before it: ", Quote(set.text))
                 .With("all workers set the same optimizer, in the same order of calls");
  }
  if (!status.ok()) status = std::move(status).In(StrCat("pserver ", facts_.address));
  SendTo(from.trainer, protocol::OptimizerSet{set.number, std::move(status)});
}

void Pserver::On(const From& from, const protocol::Barrier& barrier, Actions&) {
  if (!ServesKeys()) return RefuseKeys(from);
  At(from.trainer).worked = true;
  keys_->Enter(from.trainer, barrier.number);
  EndBarriers();
}

void Pserver::On(const From& from, const protocol::CutKeys& cut, Actions& actions) {
  if (!ServesKeys()) return RefuseKeys(from);
  At(from.trainer).worked = true;
  KeyCuts::Pushes pushes;
  for (const protocol::KeyPushes& key : cut.pushes) {
    const std::optional<int> param = admission_.terms(from.trainer).ParamOfPull(key.variable);
    if (!param || store_->IsTable(*param)) {
      return Refuse(from.caller, InvalidArgument("E-rpc-variable", "trainer ", from.trainer,
                                                 " names variable ", key.variable, ", which is no key"));
    }
    if (!keys_->IsLeft(*param)) pushes[*param] = key.pushes;
  }
  machine_->CutKeys(from.trainer, cut.step, pushes, actions);
  SendTo(from.trainer, protocol::KeysCut{cut.step});
}

void Pserver::On(const From& from, const protocol::CountGone& count, Actions&) {
  if (!ServesKeys()) return RefuseKeys(from);
  const auto is_gone = [](const Trainer& worker) { return worker.dead.has_value(); };
  SendTo(from.trainer, protocol::GoneCounted{
                           .request = count.request,
                           .workers = static_cast<std::uint64_t>(std::ranges::count_if(trainers_, is_gone))});
}

void Pserver::StartKeyCut(const CutAction& cut) {
  const std::size_t queue = store_->QueueOf(cut.param, cut.chunk);
  if (cut.param < 0) return queues_->Push(queue, ChunkQueues::Size::kSmall, [this] { Copied([] {}); });
  const ChunkId at{cut.param, cut.chunk};
  queues_->Push(queue, ChunkQueues::Size::kSmall,
                [this, at, copy = key_saves_->CopyFor(at)] { store_->BeginKeyCut(at, copy); });
  cuts_.push_back(at);
  if (!std::exchange(copies_cuts_, true)) CopyNextCut();
}

void Pserver::WriteKeyCut(const WriteCutAction& write) {
  std::map<int, KeyCheckpoints::Place> params;
  for (const int param : write.params)
    params[param] = {.body = keys_->BodyOf(param), .chunk_rows = store_->chunk_rows(param)};
  options_.aside([this, step = write.step, part = key_saves_->TakeCopies(params)]() mutable {
    const Status status = key_saves_->Write(step, std::move(part));
    if (status.ok()) {
      options_.report(
          StrCat("pserver ", facts_.address, ": its part of ", key_saves_->FolderOf(step), " is written"));
    }
    options_.run([this, status] {
      Done([&](Actions& next) { machine_->CutWritten(status, next); });
      queues_->RunSmall();
    });
  });
}

void Pserver::EndBarriers() {
  for (const int worker : keys_->Leave([this](int each) { return machine_->gone(each); }))
    SendTo(worker, protocol::BarrierPassed{keys_->passed()});
}

// "a barrier lacks worker 1 (last heard 3 s ago)"; empty if no barrier waits.
std::string Pserver::LackingBarrier() const {
  std::string text;
  if (!ServesKeys()) return text;
  for (const int worker : keys_->Lacks([this](int each) { return machine_->gone(each); }))
    text += StrCat(text.empty() ? "a barrier lacks " : ", ", "trainer ", worker, " (", StateOf(worker), ")");
  return text;
}

}  // namespace penstock::pserver
