// What a pserver knows of the keys of a key-value store beside their chunks: their types, the barriers of the
// workers, and which optimizer counts.
//
//   Keys keys(2);
//   if (keys.Find(body) < 0) keys.Add(body, param);
//   PENSTOCK_RETURN_IF_ERROR(keys.CheckSame(body));      // another worker declares it too
//   keys.Enter(0, 1);                                    // worker 0 is at its first barrier
//   for (const int worker : keys.Leave(gone)) ...        // BarrierPassed{keys.passed()} to it
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/protocol/bodies.h"
#include "framework/base/status.h"

namespace penstock::pserver {

class Keys {
 public:
  explicit Keys(int workers) : at_(static_cast<std::size_t>(workers)) {}

  // The number of the key's param; -1: nobody has declared it.
  int Find(const protocol::KeyBody& body) const;
  void Add(const protocol::KeyBody& body, int param) {
    keys_.emplace(NameOf(body), Key{body, param});
    bodies_[param] = body;
  }
  const protocol::KeyBody& BodyOf(int param) const { return bodies_.at(param); }
  // kInvalidArgument: E-kv-key-type (no name, a type or a shape that no key can have).
  static Status Check(const protocol::KeyBody& body);
  // kInvalidArgument E-kv-differs: the key is declared otherwise.
  Status CheckSame(const protocol::KeyBody& body) const;

  // The worker uses the key no longer. Returns whether it is the last one to say so, so that the memory is
  // free. Optimizers ignore a key that some worker has left.
  bool LeaveKey(const protocol::KeyBody& body, int worker);
  bool IsLeft(int param) const { return left_.contains(param); }

  // The worker waits at this barrier.
  void Enter(int worker, std::uint64_t number);
  // The workers whose barrier is passed, each once. `gone`: whether a worker is not waited for.
  std::vector<int> Leave(const std::function<bool(int)>& gone);
  std::uint64_t passed() const { return passed_; }
  // The workers that a barrier waits for; empty if nobody waits.
  std::vector<int> Lacks(const std::function<bool(int)>& gone) const;

  // What workers have set as the optimizer of all keys, by the number of their call.
  struct Setting {
    std::string text;
    Status status;  // whether it could be used
  };
  // null: no worker has made so many calls.
  const Setting* FindSetting(std::uint64_t call) const {
    return call > 0 && call <= settings_.size() ? &settings_[call - 1] : nullptr;
  }
  void AddSetting(std::uint64_t call, Setting setting);

 private:
  struct Key {
    protocol::KeyBody body;
    int param = 0;
    std::set<int> left_by = {};
  };
  struct Place {
    std::uint64_t entered = 0;
    bool waits = false;
  };
  using Name = std::pair<std::string, bool>;  // and whether it has moved
  static Name NameOf(const protocol::KeyBody& body) { return {body.name, body.moved}; }

  std::map<Name, Key> keys_;
  std::map<int, protocol::KeyBody> bodies_;  // by param
  std::set<int> left_;                       // params
  std::vector<Place> at_;                    // by worker
  std::uint64_t passed_ = 0;
  std::vector<Setting> settings_;
};

}  // namespace penstock::pserver
