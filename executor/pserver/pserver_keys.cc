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
  if (options.checkpoints.used()) {
    return Unimplemented("E-checkpoint-mode", "pserver ", facts.address,
                         " makes no checkpoints: it serves keys, whose workers have no common step")
        .With("leave checkpoint_steps out; workers may save what they pull");
  }
  std::unique_ptr<Pserver> server(new Pserver(RoleOf(facts), blocks, std::move(options)));
  server->keys_ = std::make_unique<Keys>(facts.workers);
  server->key_ops_ = facts.ops;
  server->no_program_ = std::make_unique<Program>();
  PENSTOCK_ASSIGN_OR_RETURN(server->store_,
                            ChunkStore::Make(*server->no_program_, server->facts_, server->key_scope_, {},
                                             server->options_.part_bytes, server->options_.table_shards));
  server->queues_ = std::make_unique<ChunkQueues>(server->store_->queue_count(), server->options_.run);
  MachineConfig config;
  config.trainers = facts.workers;
  config.part_bytes = server->options_.part_bytes;
  config.trainer_loss = server->options_.trainer_loss;
  if (config.trainer_loss == TrainerLoss::kWait) server->store_->KeepVersions();
  server->notes_ = JobNotes(server->options_.observer, config.trainers, {}, true);
  if (observe::Observer* const observer = server->options_.observer)
    server->trace_ = ServerTrace(observer->tracer(), server->facts_);
  server->machine_ = std::make_unique<StateMachine>(std::move(config), std::make_unique<KeyPolicy>());
  return server;
}

Result<int> Pserver::AddKey(const protocol::KeyBody& key) {
  int param = keys_->Find(key);
  const bool is_new = param < 0;
  if (is_new) {
    PENSTOCK_RETURN_IF_ERROR(Keys::Check(key));
    protocol::ContractPiece piece{.name = key.name,
                                  .dtype = static_cast<DType>(key.dtype),
                                  .shape = Shape(key.shape),
                                  .rows = key.rows};
    ChunkStore::NewKey added{.piece = std::move(piece), .turns = key.turns, .whole = key.whole};
    if (!key.table.empty()) {
      PENSTOCK_ASSIGN_OR_RETURN(added.table, TableOf(key));
    }
    PENSTOCK_ASSIGN_OR_RETURN(param, store_->AddKey(added));
    const MachineConfig::Param shape = store_->ShapeOf(param);
    queues_->Add(store_->chunk_count(param));
    notes_.AddParam(shape);
    trace_.AddKey(key.name);
    admission_.AddKey();
    machine_->AddParam(shape, 0);
    keys_->Add(key, param);
  } else {
    PENSTOCK_RETURN_IF_ERROR(keys_->CheckSame(key));
  }
  if (keys_->IsLeft(param)) {
    return InvalidArgument("E-kv-optimizer-split", "key ", Quote(key.name),
                           " lies in pieces, and other workers have moved it to one server");
  }
  if (optimizer_ == nullptr || !TakesOptimizer(param)) return param;
  PENSTOCK_RETURN_IF_ERROR(store_->OptimizerFits(*optimizer_, param));
  if (is_new) StartUpdates(param, false);
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
    }
  }
  optimizer_ = std::move(optimizer);
  for (int param = 0; param < machine_->param_count(); ++param) {
    if (TakesOptimizer(param)) StartUpdates(param, set.keeps_state != 0);
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
