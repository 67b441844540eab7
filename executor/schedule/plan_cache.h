// The plans of one compiled block, which frames of all places share: an LRU cache by shapes. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "executor/schedule/frame.h"

namespace penstock::exec {

class PlanCache {
 public:
  explicit PlanCache(std::size_t plans_max) : plans_max_(plans_max) {}

  struct Got {
    std::shared_ptr<const Specialisation> plan;
    std::optional<Kernels> kernels;  // of the first frame, if the plan was made in this call
  };
  // Returns the plan for what is supplied and these variables, which `make` makes if there is none: a
  // function without arguments that returns Result<Specialised>. Only one call makes a plan at a time; the
  // others wait, and may find that plan.
  template <typename Make>
  Result<Got> Get(const Supplied& supplied, const ScopeBinding& binding, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(plans_, [&](const auto& plan) { return Accepts(*plan, supplied, binding); });
    if (found != plans_.end()) {
      std::rotate(found, found + 1, plans_.end());
      return Got{plans_.back(), std::nullopt};
    }
    PENSTOCK_ASSIGN_OR_RETURN(Specialised made, make());
    if (plans_.size() >= plans_max_ && !plans_.empty()) plans_.erase(plans_.begin());
    plans_.push_back(made.plan);
    return Got{std::move(made.plan), std::move(made.kernels)};
  }

 private:
  const std::size_t plans_max_;
  std::mutex mutex_;                                          // guards plans_; held while a plan is made
  std::vector<std::shared_ptr<const Specialisation>> plans_;  // most recently used last
};

}  // namespace penstock::exec
