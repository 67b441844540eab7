#include "executor/communicator/async_mode.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "executor/communicator/merge.h"
#include "executor/observe/observer.h"

namespace penstock::communicator {
namespace {

class AsyncMode : public Mode {
 public:
  AsyncMode(RpcClient& rpc, AsyncSettings settings, std::vector<std::string> pservers, int trainer_id)
      : rpc_(rpc),
        settings_(settings),
        addresses_(std::move(pservers)),
        trainer_id_(trainer_id),
        queues_(settings.queues, settings.observer),
        sends_([this] { SendRounds(); }) {
    if (settings_.receives_apart) receives_ = std::thread([this] { ReceiveRounds(); });
  }
  ~AsyncMode() override { End(); }

  Status Send(Gradient& gradient, const Variable& value, const Tensor& residual) override {
    if (!value.Is<Tensor>() && !value.Is<SelectedRows>())
      return InvalidArgument("E-send-kind", "send: only tensors and rows of them are sent");
    return Put(gradient, residual, CopyOf(value));
  }
  // Counted steps wait in a queue of their own, so that they leave in the same round as their gradients.
  Status CountStep(PeersHandle pservers) override {
    {
      const std::lock_guard lock(mutex_);
      counted_at_ = pservers;
    }
    return Put(counts_, {}, Variable());
  }
  Status EndStep(PeersHandle) override { return status(); }  // the send thread ends the client's steps

  Status Land(Param& param, Tensor& out) override {
    std::unique_lock lock(mutex_);
    WaitForOwnGradients(lock);
    Received& received = received_[&param];
    if (received.fresh) out.CopyFrom(received.newest);
    received.fresh = false;
    return status_;
  }

  Status BeginRun(Scope& scope) override {
    std::unique_lock lock(mutex_);
    WaitForOwnGradients(lock);
    for (auto& [param, received] : received_) {
      Variable* variable = received.fresh ? scope.Find(param->whole.name) : nullptr;
      Tensor* out = variable == nullptr ? nullptr : variable->If<Tensor>();
      if (out == nullptr || out->dtype() != received.newest.dtype() ||
          out->shape() != received.newest.shape()) {
        continue;  // the parameter's recv reports the error
      }
      out->CopyFrom(received.newest);
      received.fresh = false;
    }
    return status_;
  }

  bool ends_steps() const override { return true; }

  // The servers count a pushed gradient among those of an ended step: a later pull waits for it.
  // What was sent may still be on its way, or wait to be applied: a value received after it contains it.
  Status Flush() override {
    queues_.Drain();
    PENSTOCK_RETURN_IF_ERROR(status());
    return attached_ ? Receive() : OkStatus();
  }

  Status Stop() override {
    End();
    return status();
  }

 private:
  struct Received {
    Tensor arriving, newest;  // guarded by receiving_ and by the lock
    bool fresh = false;       // `newest` has not been landed yet
  };

  struct Sent {
    const Gradient* gradient = nullptr;
    Tensor residual;  // shares the caller's memory; the send thread updates its elements
    // How many have been put into the queue; have been pushed; are part of the received parameters.
    std::size_t put = 0, pushed = 0, in_parameters = 0;
  };

  bool IsBehind(const Sent& sent) const {
    return sent.put > sent.in_parameters + settings_.own_gradients_missing_max();
  }

  Status status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

  // Waits until the received parameters contain all but the newest `own_gradients_missing_max` gradients of
  // each variable. It ends: those beyond a full queue are of more rounds than a receive needs. Counts the
  // wait as exposed time, but for no peer, as SendQueues does.
  void WaitForOwnGradients(std::unique_lock<std::mutex>& lock) {
    const auto recent = [this] { return stop_receiving_ || behind_ == 0; };
    if (received_.empty() || recent()) return;
    observe::Observer* observer = settings_.observer;
    const Nanoseconds began = observer == nullptr ? Nanoseconds(0) : observer->clock().Now();
    received_changed_.wait(lock, recent);
    if (observer != nullptr) observer->CountWait(observer->clock().Now() - began, nullptr);
  }

  Status Put(Gradient& gradient, const Tensor& residual, Variable value) {
    if (queues_.Put(QueueOf(gradient, residual), std::move(value))) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(status());
    return FailedPrecondition("E-communicator-stopped", "send: ", gradient.whole.name,
                              " comes after the communicator was stopped");
  }

  std::size_t QueueOf(Gradient& gradient, const Tensor& residual) {
    const std::lock_guard lock(mutex_);
    const auto [known, added] = queue_of_.try_emplace(&gradient, gradients_.size());
    if (added) gradients_.push_back({.gradient = &gradient, .residual = {}});
    Sent& sent = gradients_[known->second];
    sent.residual = residual;
    const bool was_behind = IsBehind(sent);
    ++sent.put;
    if (IsBehind(sent) && !was_behind) ++behind_;
    return known->second;
  }

  void End() {
    queues_.Close();
    if (sends_.joinable()) sends_.join();
    {
      const std::lock_guard lock(mutex_);
      StopReceiving();
    }
    if (receives_.joinable()) receives_.join();
  }

  void Fail(Status why) {
    queues_.CloseEmpty();
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(why);
    StopReceiving();
  }

  void StopReceiving() {  // with the lock held
    stop_receiving_ = true;
    rounds_changed_.notify_all();
    received_changed_.notify_all();
  }

  void SendRounds() {
    const observe::BackgroundThread trainer_goes_on;
    for (std::vector<SendQueues::Batch> round = queues_.Take(); !round.empty(); round = queues_.Take()) {
      Status sent = SendRound(std::move(round));
      if (!sent.ok()) return Fail(std::move(sent));
      if (!settings_.receives_apart && NoteRound()) sent = Receive();
      if (!sent.ok()) return Fail(std::move(sent));
      if (settings_.receives_apart) NoteRound();
    }
    if (!attached_) return;
    Status last = rpc_.CompletePulls(pservers_);
    if (!last.ok()) Fail(std::move(last));
  }

  Status SendRound(std::vector<SendQueues::Batch> round) {
    if (!attached_) {
      PENSTOCK_ASSIGN_OR_RETURN(pservers_, rpc_.DeclarePeers(addresses_, trainer_id_));
      attached_ = true;
    }
    std::size_t counts = 0;
    std::vector<std::pair<std::size_t, std::size_t>> taken;  // (queue, gradients)
    for (SendQueues::Batch& batch : round) {
      taken.emplace_back(batch.queue, batch.gradients.size());
      Sent sent;
      {
        const std::lock_guard lock(mutex_);
        sent = gradients_[batch.queue];
      }
      if (sent.gradient == &counts_) {
        counts = batch.gradients.size();
        continue;
      }
      const MergeRule rule = sent.gradient->whole.adds ? MergeRule::kSum : MergeRule::kMean;
      PENSTOCK_ASSIGN_OR_RETURN(const Variable merged, Merge(std::move(batch.gradients), rule));
      PENSTOCK_RETURN_IF_ERROR(PushRows(rpc_, *sent.gradient, merged, sent.residual));
    }
    PENSTOCK_RETURN_IF_ERROR(EndRound(counts));
    const std::lock_guard lock(mutex_);
    for (const auto& [queue, gradients] : taken) gradients_[queue].pushed += gradients;
    return OkStatus();
  }

  // A step of the client counts only one step of the program. For each further counted step of a merged
  // round, a step without gradients follows.
  Status EndRound(std::size_t counts) {
    PeersHandle counted_at;
    {
      const std::lock_guard lock(mutex_);
      counted_at = counted_at_;
    }
    if (counts > 0) PENSTOCK_RETURN_IF_ERROR(rpc_.CountStep(counted_at));
    PENSTOCK_RETURN_IF_ERROR(rpc_.EndStep(pservers_));
    return counts > 1 ? EndRound(counts - 1) : OkStatus();
  }

  // Returns whether it is time to receive.
  bool NoteRound() {
    const std::lock_guard lock(mutex_);
    ++rounds_;
    rounds_changed_.notify_all();
    return rounds_ > settings_.rounds_before_receive;
  }

  void ReceiveRounds() {
    const observe::BackgroundThread trainer_goes_on;
    std::unique_lock lock(mutex_);
    while (true) {
      rounds_changed_.wait(lock,
                           [&] { return stop_receiving_ || rounds_ > settings_.rounds_before_receive; });
      if (stop_receiving_) return;
      lock.unlock();
      Status received = Receive();
      if (!received.ok()) return Fail(std::move(received));
      lock.lock();
    }
  }

  // Receives all parameters that have been landed so far: a program lands each in every step.
  Status Receive() {
    const std::lock_guard one_at_a_time(receiving_);
    std::vector<std::pair<Param*, Received*>> all;
    std::vector<std::size_t> pushed;  // by queue; the servers answer with these gradients applied
    {
      const std::lock_guard lock(mutex_);
      rounds_ = 0;
      for (const Sent& sent : gradients_) pushed.push_back(sent.pushed);
      for (auto& [param, received] : received_) all.emplace_back(param, &received);
    }
    for (const auto& [param, received] : all) {
      PENSTOCK_RETURN_IF_ERROR(PullRows(rpc_, *param, received->arriving));
    }
    PENSTOCK_RETURN_IF_ERROR(rpc_.CompletePulls(pservers_));
    const std::lock_guard lock(mutex_);
    for (const auto& [param, received] : all) {
      std::swap(received->arriving, received->newest);
      received->fresh = true;
    }
    for (std::size_t queue = 0; queue < pushed.size(); ++queue)
      gradients_[queue].in_parameters = pushed[queue];
    behind_ = std::count_if(gradients_.begin(), gradients_.end(), [&](const Sent& s) { return IsBehind(s); });
    received_changed_.notify_all();
    return OkStatus();
  }

  RpcClient& rpc_;
  const AsyncSettings settings_;
  const std::vector<std::string> addresses_;
  const int trainer_id_;
  PeersHandle pservers_;                // set by the send thread in its first round, then constant
  std::atomic<bool> attached_ = false;  // set by the send thread after pservers_
  SendQueues queues_;
  std::mutex receiving_;      // held while parameters are received; taken before the lock
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable rounds_changed_, received_changed_;
  Status status_;
  Gradient counts_{.whole = {.name = "the count of a step", .pieces = {}}, .pieces = {}};
  PeersHandle counted_at_;
  std::vector<Sent> gradients_;  // by queue
  std::size_t behind_ = 0;       // how many of them are behind
  std::map<const Gradient*, std::size_t> queue_of_;
  std::map<Param*, Received> received_;
  std::size_t rounds_ = 0;  // since parameters were last requested
  bool stop_receiving_ = false;
  std::thread sends_, receives_;  // last members: they use the others
};

}  // namespace

std::unique_ptr<Mode> MakeAsyncMode(RpcClient& rpc, AsyncSettings settings, std::vector<std::string> pservers,
                                    int trainer_id) {
  return std::make_unique<AsyncMode>(rpc, settings, std::move(pservers), trainer_id);
}

}  // namespace penstock::communicator
