// The op timer that all executors of this process share.
#pragma once

#include "executor/schedule/op_timer.h"

namespace penstock::python {

exec::OpTimer& TimerOfThisProcess();

}  // namespace penstock::python
