#include "executor/communicator/geo_mode.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "executor/communicator/deltas.h"

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

class GeoMode : public Mode {
 public:
  GeoMode(RpcClient& rpc, const GeoSettings& settings, Program exchange)
      : rpc_(rpc),
        share_(1.0 / settings.trainers),
        push_every_(settings.push_every),
        program_(std::move(exchange)) {
    for (const GeoVariable& variable : settings.variables) all_.emplace_back().rows = variable.rows;
  }

  bool has_begun() const override { return scope_ != nullptr; }

  Status Begin(std::shared_ptr<Scope> scope) override {
    PENSTOCK_RETURN_IF_ERROR(rpc_.Attach(program_));
    PENSTOCK_RETURN_IF_ERROR(Declare());
    scope_ = std::move(scope);
    Status status = FindParams();
    if (!status.ok()) {
      scope_.reset();
      return status;
    }
    for (Exchange& one : all_) {
      one.old = one.now->Clone();
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
    if (++steps_ < push_every_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(SendDeltas());
    return ReceiveValues();
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
    return rpc_.EndStep(pservers_);
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
};

}  // namespace

std::unique_ptr<Mode> MakeGeoMode(RpcClient& rpc, const GeoSettings& settings, Program exchange) {
  return std::make_unique<GeoMode>(rpc, settings, std::move(exchange));
}

}  // namespace penstock::communicator
