// The dispatcher of the corpus's hashfix cases: assigns each variable by Python 3.7's hash of its name, with
// PYTHONHASHSEED=0.
#pragma once

#include "transpiler/plan/dispatcher.h"

namespace penstock::test {

plan::DispatcherFactory PythonHashDispatchers();

}  // namespace penstock::test
