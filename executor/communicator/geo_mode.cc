#include "executor/communicator/geo_mode.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "executor/communicator/deltas.h"
#include "framework/base/log.h"

namespace penstock::communicator {
namespace {

// The rows of a table that were touched since the last exchange, as a bit set.
class TouchedRows {
 public:
  void Reset(Dim rows) { bits_.assign(static_cast<std::size_t>(rows + 63) / 64, 0); }
  void Add(std::int64_t row) { bits_[static_cast<std::size_t>(row / 64)] |= std::uint64_t{1} << (row % 64); }
  // Moves the rows to `rows`, in ascending order, each once.
  void MoveTo(std::vector<std::int64_t>& rows) {
    rows.clear();
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      for (std::uint64_t& bits = bits_[i]; bits != 0; bits &= bits - 1)
        rows.push_back(static_cast<std::int64_t>(i * 64) + std::countr_zero(bits));
    }
  }

 private:
  std::vector<std::uint64_t> bits_;
};

struct Exchange {
  bool rows = false;
  Gradient delta;
  Param param;
  Tensor* now = nullptr;  // the parameter in the trainer's scope
  Tensor old;
  Variable sent;
  Tensor arriving;  // for a dense parameter
  // For a table:
  TouchedRows touched;
  std::vector<std::int64_t> touched_list;
  std::vector<std::shared_ptr<SelectedRows>> changed;  // for each piece
};

constexpr auto kLookEvery = std::chrono::milliseconds(10);  // for a checkpoint's parts, in a folder

std::string BaseName(const std::string& param) { return param + "@BASE"; }

class GeoMode : public Mode {
 public:
  GeoMode(RpcClient& rpc, const GeoSettings& settings, Program exchange, GeoCheckpoints checkpoints)
      : rpc_(rpc),
        share_(1.0 / settings.trainers),
        push_every_(settings.push_every),
        program_(std::move(exchange)),
        checkpoints_(std::move(checkpoints)) {
    for (const GeoVariable& variable : settings.variables) all_.emplace_back().rows = variable.rows;
  }

  bool has_begun() const override { return scope_ != nullptr; }

  Status Begin(std::shared_ptr<Scope> scope) override {
    PENSTOCK_RETURN_IF_ERROR(rpc_.Attach(program_));
    PENSTOCK_RETURN_IF_ERROR(Declare());
    scope_ = std::move(scope);
    Status status = FindParams();
    if (status.ok()) status = BeginCheckpoints();
    if (!status.ok()) {
      scope_.reset();
      return status;
    }
    for (Exchange& one : all_) {
      if (!one.old.initialized()) one.old = one.now->Clone();
      if (one.rows) one.touched.Reset(one.now->shape()[0]);
    }
    return OkStatus();
  }

  Status Touch(const Table& table, std::span<const std::int64_t> ids) override {
    if (scope_ == nullptr) return OtherScope();
    PENSTOCK_ASSIGN_OR_RETURN(Exchange* const one, ExchangeOf(table));
    const Dim rows = one->old.shape()[0];
    for (const std::int64_t id : ids) {
      if (id >= 0 && id < rows) {
        one->touched.Add(id);
        continue;
      }
      return InvalidArgument("E-communicator-row", "the step touched row ", id, " of ", table.name,
                             ", which has ", rows);
    }
    return OkStatus();
  }

  Status EndLocalStep(const Scope& scope) override {
    if (&scope != scope_.get()) return OtherScope();
    ++count_.steps;
    if (++steps_ < push_every_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(SendDeltas());
    PENSTOCK_RETURN_IF_ERROR(ReceiveValues());
    return parts_ ? SaveIfDue() : OkStatus();
  }

  Status Flush() override {
    if (steps_ == 0 || scope_ == nullptr) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(SendDeltas());
    return rpc_.CompletePulls(pservers_);
  }

  Status Stop() override {
    const std::shared_ptr<Scope> scope = scope_;  // keeps the scope until this call ends
    Status status = steps_ > 0 ? SendDeltas() : OkStatus();
    if (status.ok() && scope != nullptr) status = rpc_.CompletePulls(pservers_);
    scope_.reset();
    return status;
  }

 private:
  static Status OtherScope() {
    return FailedPrecondition("E-communicator-scope",
                              "a step of geo-SGD ran in another scope than the first, ",
                              "whose parameters this process's communicator exchanges");
  }

  Status Declare() {
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<Exchanged> cut, ReadExchange(program_));
    std::set<std::string> addresses;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      all_[i].delta = {.whole = std::move(cut[i].delta), .pieces = {}};
      all_[i].param = {.whole = std::move(cut[i].param), .pieces = {}};
      all_[i].changed.clear();
      for (const WholeVariable::Piece& piece : all_[i].delta.whole.pieces) {
        PENSTOCK_ASSIGN_OR_RETURN(const PushHandle handle, rpc_.DeclarePush(piece.remote));
        all_[i].delta.pieces.push_back(handle);
        addresses.insert(piece.remote.pserver);
      }
      for (const WholeVariable::Piece& piece : all_[i].param.whole.pieces) {
        PENSTOCK_ASSIGN_OR_RETURN(const PullHandle handle, rpc_.DeclarePull(piece.remote));
        all_[i].param.pieces.push_back(handle);
        if (all_[i].rows) all_[i].changed.push_back(std::make_shared<SelectedRows>());
      }
    }
    PENSTOCK_ASSIGN_OR_RETURN(pservers_, rpc_.DeclarePeers({addresses.begin(), addresses.end()}, 0));
    return OkStatus();
  }

  // Pointers to the scope's variables are valid while its generation does not change.
  Status FindParams() {
    generation_ = scope_->generation();
    for (Exchange& one : all_) {
      const WholeVariable& whole = one.param.whole;
      const Dim rows = whole.pieces.back().end;
      Variable* variable = scope_->Find(whole.name);
      one.now = variable == nullptr ? nullptr : variable->If<Tensor>();
      const Shape& first = whole.pieces.front().remote.shape;
      const Shape shape = whole.pieces.size() == 1 ? first : first.WithRows(rows);
      if (one.now != nullptr && one.now->initialized() && one.now->shape() == shape &&
          one.now->dtype() == whole.pieces.front().remote.dtype)
        continue;
      return FailedPrecondition("E-communicator-param", whole.name, " : ",
                                DTypeName(whole.pieces.front().remote.dtype), shape,
                                " has no value in the trainer's scope; run its startup program first");
    }
    return OkStatus();
  }

  // Never null. Each table is looked up by name once.
  Result<Exchange*> ExchangeOf(const Table& table) {
    if (table.index >= by_table_.size()) by_table_.resize(table.index + 1, nullptr);
    Exchange*& known = by_table_[table.index];
    if (known != nullptr) return known;
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const Exchange& one) {
      return one.rows && one.param.whole.name == table.name;
    });
    if (found == all_.end()) {
      return InvalidArgument("E-communicator-geo", "the program touches rows of ", table.name,
                             ", which its communicator was not told to exchange by rows");
    }
    return known = &*found;
  }

  // Sends all deltas, and ends a step of the client.
  Status SendDeltas() {
    steps_ = 0;
    if (scope_->generation() != generation_) PENSTOCK_RETURN_IF_ERROR(FindParams());
    for (Exchange& one : all_) {
      if (one.rows) {
        one.touched.MoveTo(one.touched_list);
        TakeDelta(*one.now, one.touched_list, share_, one.old, one.sent.As<SelectedRows>());
      } else {
        TakeDelta(*one.now, share_, one.old, one.sent.As<Tensor>());
      }
      PENSTOCK_RETURN_IF_ERROR(PushRows(rpc_, one.delta, one.sent, {}));
    }
    if (parts_ && parts_->Keeps(count_.exchanges)) {
      TrainerParts::Deltas deltas;
      for (const Exchange& one : all_) deltas.emplace_back(one.param.whole.name, one.sent);
      parts_->Keep(count_.exchanges, deltas);
    }
    ++count_.exchanges;
    return rpc_.EndStep(pservers_);
  }

  // A trainer that is far ahead of another one waits here for the next checkpoint.
  Status SaveIfDue() {
    for (bool is_told = false;; is_told = true) {
      PENSTOCK_RETURN_IF_ERROR(parts_->SaveIfDue(count_, [this] { return ValuesToSave(); }));
      if (!parts_->is_full()) return OkStatus();
      if (!is_told) {
        Log(LogSeverity::kInfo,
            StrCat("trainer ", rpc_.trainer(), " waits for checkpoint ", parts_->awaited(),
                   " after exchange ", count_.exchanges,
                   ": other trainers have made fewer exchanges, and it keeps all that it has ",
                   "sent since then, ", checkpoints_.parts.most_bytes >> 20, " MB (PENSTOCK_RETENTION_MB)"));
      }
      std::mutex mutex;
      std::unique_lock lock(mutex);
      Status job;  // it may end meanwhile
      std::condition_variable().wait_for(lock, kLookEvery, [&] {
        job = rpc_.CompletePulls(pservers_);
        return !job.ok();
      });
      PENSTOCK_RETURN_IF_ERROR(job);
    }
  }

  Status BeginCheckpoints() {
    if (checkpoints_.parts.disk == nullptr) return OkStatus();
    parts_.emplace(checkpoints_.parts, rpc_.trainer());
    PENSTOCK_ASSIGN_OR_RETURN(count_.exchanges, rpc_.FirstStep());
    return parts_->continues() ? Restore() : OkStatus();
  }

  // The values that it had after its exchange, and on the servers all of its deltas until then.
  Status Restore() {
    PENSTOCK_ASSIGN_OR_RETURN(const TrainerParts::Saved saved, parts_->Restore(count_.exchanges));
    const auto put = [&](const std::string& name, Tensor& to) {
      const auto found = saved.values.find(name);
      if (found == saved.values.end() || found->second.dtype() != to.dtype() ||
          found->second.shape() != to.shape()) {
        return FailedPrecondition("E-checkpoint-differs", "the trainer's part of checkpoint ",
                                  *checkpoints_.parts.resume, " has no ", name, " : ", DTypeName(to.dtype()),
                                  to.shape())
            .With("continue a job with the script that made its checkpoint");
      }
      std::memcpy(to.raw(), found->second.raw(), to.bytes());
      return OkStatus();
    };
    for (Exchange& one : all_) {
      one.old = Tensor(one.now->dtype(), one.now->shape());
      PENSTOCK_RETURN_IF_ERROR(put(one.param.whole.name, *one.now));
      PENSTOCK_RETURN_IF_ERROR(put(BaseName(one.param.whole.name), one.old));
    }
    for (const std::string& name : checkpoints_.own)
      if (Tensor* const own = OwnTensor(name)) PENSTOCK_RETURN_IF_ERROR(put(name, *own));
    for (const std::map<std::string, Variable>& deltas : saved.deltas)
      PENSTOCK_RETURN_IF_ERROR(SendAgain(deltas));
    count_.steps = saved.count.steps;
    return rpc_.CompletePulls(pservers_);
  }

  Status SendAgain(const std::map<std::string, Variable>& deltas) {
    TrainerParts::Deltas kept;
    for (Exchange& one : all_) {
      const auto delta = deltas.find(one.param.whole.name);
      if (delta == deltas.end()) {
        return DataLoss("E-checkpoint-whole", "the trainer's part of checkpoint ", *checkpoints_.parts.resume,
                        " lacks the delta of ", one.param.whole.name, " in exchange ", count_.exchanges);
      }
      kept.emplace_back(*delta);
      PENSTOCK_RETURN_IF_ERROR(PushRows(rpc_, one.delta, delta->second, {}));
    }
    if (parts_->Keeps(count_.exchanges)) parts_->Keep(count_.exchanges, kept);
    ++count_.exchanges;
    return rpc_.EndStep(pservers_);
  }

  Tensor* OwnTensor(const std::string& name) const {
    Variable* const variable = scope_->Find(name);
    Tensor* const tensor = variable == nullptr ? nullptr : variable->If<Tensor>();
    return tensor != nullptr && tensor->initialized() ? tensor : nullptr;
  }

  TrainerParts::Values ValuesToSave() const {
    TrainerParts::Values values;
    for (const Exchange& one : all_) {
      values.emplace_back(one.param.whole.name, *one.now);
      values.emplace_back(BaseName(one.param.whole.name), one.old);
    }
    for (const std::string& name : checkpoints_.own)
      if (const Tensor* const own = OwnTensor(name)) values.emplace_back(name, *own);
    return values;
  }

  Status ReceiveValues() {
    for (Exchange& one : all_) {
      if (!one.rows) PENSTOCK_RETURN_IF_ERROR(PullRows(rpc_, one.param, one.arriving));
      for (std::size_t i = 0; i < one.changed.size(); ++i)
        PENSTOCK_RETURN_IF_ERROR(rpc_.PullChanged(one.param.pieces[i], one.changed[i]));
    }
    PENSTOCK_RETURN_IF_ERROR(rpc_.CompletePulls(pservers_));
    for (Exchange& one : all_) {
      if (!one.rows) LandValue(one.arriving, one.old, *one.now);
      for (std::size_t i = 0; i < one.changed.size(); ++i)
        LandValue(*one.changed[i], one.param.whole.pieces[i].begin, one.old, *one.now);
    }
    return OkStatus();
  }

  RpcClient& rpc_;
  const double share_;
  const int push_every_;
  const Program program_;
  std::vector<Exchange> all_;
  std::vector<Exchange*> by_table_;  // by Table::index
  PeersHandle pservers_;
  std::shared_ptr<Scope> scope_;  // null before Begin and after Stop
  std::uint64_t generation_ = 0;
  int steps_ = 0;  // since the last exchange
  const GeoCheckpoints checkpoints_;
  std::optional<TrainerParts> parts_;
  TrainerParts::Count count_;
};

}  // namespace

std::unique_ptr<Mode> MakeGeoMode(RpcClient& rpc, const GeoSettings& settings, Program exchange,
                                  GeoCheckpoints checkpoints) {
  return std::make_unique<GeoMode>(rpc, settings, std::move(exchange), std::move(checkpoints));
}

}  // namespace penstock::communicator
