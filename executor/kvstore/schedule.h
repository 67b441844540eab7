// The learning rate of an update by its number, as MXNet's lr_scheduler computes it.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Schedule s, MakeSchedule("factor", {{"step", 2}, {"factor", 0.5}}));
//   RateAt(s, 3)    // 0.005: the first two updates use base_lr, 0.01 by default
//
//   factor        step, factor, stop_factor_lr: the rate is multiplied by `factor` after each `step` updates
//   multi_factor  factor, and a list of steps: the rate is multiplied by `factor` after each listed update
//   poly          max_update, pwr, final_lr: from base_lr to final_lr as the power `pwr` of what is left
//   cosine        max_update, final_lr: the same along half a wave of the cosine
//
// All have base_lr, warmup_steps, warmup_begin_lr: while the number of the update is below warmup_steps, the
// rate goes from warmup_begin_lr to base_lr, or stays at warmup_begin_lr (constant_warmup).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock::kvstore {

using Numbers = std::map<std::string, double, std::less<>>;

struct Schedule {
  std::string type;                 // empty: there is no schedule
  Numbers numbers;                  // all of the type, defaults included
  std::vector<std::int64_t> steps;  // of multi_factor
  bool constant_warmup = false;

  bool none() const { return type.empty(); }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Fills in defaults. kInvalidArgument E-kv-schedule: an unknown type or argument, or a value out of range.
Result<Schedule> MakeSchedule(std::string_view type, const Numbers& given,
                              std::vector<std::int64_t> steps = {}, bool constant_warmup = false);

// The rate of update `number`, counted from 1. Requires a schedule.
double RateAt(const Schedule& schedule, std::int64_t number);

}  // namespace penstock::kvstore
